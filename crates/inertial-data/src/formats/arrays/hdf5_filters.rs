//! Filters of HDF5 datasets: LZF, the fast compression of h5py, and the names of filters that are not supported.

use hdf5_reader::FilterRegistry;
use hdf5_reader::error::Error;

/// Number of LZF among the registered filters.
const LZF: u16 = 32000;
/// Registered filters that need a plugin.
const PLUGINS: [(&str, &str); 8] = [
    ("307", "bzip2"),
    ("32001", "Blosc"),
    ("32004", "LZ4"),
    ("32008", "bitshuffle"),
    ("32013", "ZFP"),
    ("32015", "Zstandard"),
    ("32017", "SZ"),
    ("32026", "Blosc2"),
];

/// Returns the supported filters; `most` is the maximum size of a chunk in bytes.
pub(super) fn registry(most: usize) -> FilterRegistry {
    let mut out = FilterRegistry::new();
    let filter = move |description: &hdf5_reader::messages::filter_pipeline::FilterDescription,
                       data: &[u8],
                       _: usize| {
        // The third number is the size of the chunk.
        let size = description.client_data.get(2).map_or(most, |&size| (size as usize).min(most));
        lzf(data, size).ok_or_else(|| Error::DecompressionError("LZF data are damaged".to_owned()))
    };
    out.register(LZF, Box::new(filter));
    out
}

/// Decompresses LZF data of at most `most` bytes; `None` if they are damaged.
///
/// A control byte below 32 is followed by that many bytes plus one, which are copied. Another one starts a repetition: its upper three
/// bits are the length minus two (7 if a byte with the rest follows), its lower five bits and the next byte the distance minus one.
fn lzf(mut data: &[u8], most: usize) -> Option<Vec<u8>> {
    let mut out: Vec<u8> = Vec::with_capacity(most.min(1 << 20));
    while let Some((&control, rest)) = data.split_first() {
        data = rest;
        let control = usize::from(control);
        if control < 32 {
            let (plain, rest) = data.split_at_checked(control + 1)?;
            out.extend_from_slice(plain);
            data = rest;
        } else {
            let mut length = (control >> 5) + 2;
            if length == 9 {
                let (&more, rest) = data.split_first()?;
                length += usize::from(more);
                data = rest;
            }
            let (&low, rest) = data.split_first()?;
            data = rest;
            let distance = ((control & 31) << 8) + usize::from(low) + 1;
            let start = out.len().checked_sub(distance)?;
            // The repeated part may overlap its copy.
            for k in start..start + length {
                out.push(out[k]);
            }
        }
        if out.len() > most {
            return None;
        }
    }
    Some(out)
}

/// Returns the message about a filter that is not supported; `None` for other causes.
pub(super) fn unsupported(dataset: &str, cause: &str) -> Option<String> {
    let number = cause.split("unsupported filter: filter id ").nth(1)?.trim();
    let name = PLUGINS.iter().find(|(own, _)| *own == number).map_or("an unknown filter", |(_, name)| name);
    Some(format!(
        "holds the dataset {dataset}, which is compressed with {name} (filter {number}): that is not supported; \
         compress it with gzip instead, `h5repack -f GZIP=4 OLD NEW`"
    ))
}

#[cfg(test)]
mod tests {
    use super::lzf;

    #[test]
    fn lzf_is_decompressed() {
        // Three bytes, then nine bytes from three back (length 2 + 7, extended by zero), then one byte.
        let packed = [2, b'a', b'b', b'c', 0xe0, 0, 2, 0, b'd'];
        assert_eq!(lzf(&packed, 100).as_deref(), Some(&b"abcabcabcabcd"[..]));
        assert_eq!(lzf(&packed, 12), None);
        // Data that end early, and a repetition from before the start.
        for bad in [&packed[..3], &packed[..5], &packed[..6], &[0x20, 5][..]] {
            assert_eq!(lzf(bad, 100), None);
        }
    }
}
