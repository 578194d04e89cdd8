//! Texts in other encodings than UTF-8.

use encoding_rs::Encoding;

use crate::{Error, Result};

/// Number of bytes at the start of a text in which the XML declaration is searched for.
const DECLARATION: usize = 256;

/// Decodes a text: UTF-8, UTF-16 with a byte order mark, or the encoding of an XML declaration, which is then changed to UTF-8.
pub(crate) fn decoded(bytes: Vec<u8>) -> Result<String> {
    let bytes = match String::from_utf8(bytes) {
        Ok(text) => return Ok(text),
        Err(error) => error.into_bytes(),
    };
    let (encoding, start) = match Encoding::for_bom(&bytes) {
        Some(found) => found,
        None => (declared(&bytes)?, 0),
    };
    let text = encoding.decode_without_bom_handling_and_without_replacement(&bytes[start..]);
    let text = text.ok_or_else(|| Error::Input(format!("is not {} text", encoding.name())))?;
    Ok(as_utf8(&text))
}

/// Returns the encoding that an XML declaration names.
fn declared(bytes: &[u8]) -> Result<&'static Encoding> {
    let start = String::from_utf8_lossy(&bytes[..bytes.len().min(DECLARATION)]).into_owned();
    let Some((from, to)) = declaration(&start) else {
        let at = std::str::from_utf8(bytes).map_or_else(|e| e.valid_up_to(), str::len);
        return Err(Error::Input(format!("is not UTF-8 text: byte {at} is invalid")));
    };
    let name = &start[from..to];
    Encoding::for_label(name.as_bytes())
        .ok_or_else(|| Error::Input(format!("declares the unknown encoding {name}: save it as UTF-8")))
}

/// Returns the position of the encoding name in an XML declaration.
fn declaration(text: &str) -> Option<(usize, usize)> {
    let end = text.trim_start().starts_with("<?xml").then(|| text.find("?>"))??;
    let key = text[..end].find("encoding")? + "encoding".len();
    let from = key + text[key..end].find(['"', '\''])? + 1;
    let quote = text[..from].chars().last()?;
    Some((from, from + text[from..end].find(quote)?))
}

/// Returns the text with the encoding of its XML declaration changed to UTF-8.
fn as_utf8(text: &str) -> String {
    let mut out = text.to_owned();
    if let Some((from, to)) = declaration(text) {
        out.replace_range(from..to, "UTF-8");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declared_encodings_are_decoded() {
        let text = "<?xml version='1.0' encoding='ISO-8859-1'?><robot name='b\u{e4}r'/>";
        let latin: Vec<u8> = text.chars().map(|c| u8::try_from(u32::from(c)).unwrap_or(b'?')).collect();
        let expected = text.replace("ISO-8859-1", "UTF-8");
        assert_eq!(decoded(latin).unwrap_or_default(), expected);
        let wide: Vec<u8> =
            [0xff, 0xfe].into_iter().chain(text.encode_utf16().flat_map(u16::to_le_bytes)).collect();
        assert_eq!(decoded(wide).unwrap_or_default(), expected);
        // Valid UTF-8 is kept, whatever encoding it declares.
        assert_eq!(decoded(text.as_bytes().to_vec()).unwrap_or_default(), text);
    }

    #[test]
    fn other_bytes_are_refused() {
        let message = |bytes: &[u8]| decoded(bytes.to_vec()).map_err(|e| e.to_string());
        assert_eq!(message(b"<robot \xe4>"), Err("is not UTF-8 text: byte 7 is invalid".into()));
        let unknown = message(b"<?xml encoding='x-mine'?>\xe4").unwrap_err();
        assert!(unknown.contains("declares the unknown encoding x-mine"), "{unknown}");
        let broken = message(b"<?xml encoding='UTF-8'?>\xe4").unwrap_err();
        assert_eq!(broken, "is not UTF-8 text");
    }
}
