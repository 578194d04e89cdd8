//! xacro: expansions compared with those of the Python package, errors with their positions, and limits of the work.

#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

use inertial::mechanism::read::xacro::{Files, NoFiles, expand, has_expressions, is_xacro};
use roxmltree::{Document, Node};

use crate::common::python::run;

const HEAD: &str = "<robot name='r' xmlns:xacro='http://www.ros.org/wiki/xacro'>";

/// Files by name.
struct Given(HashMap<String, String>);

impl Files for Given {
    fn text(&self, path: &str) -> Result<String, String> {
        self.0.get(path).cloned().ok_or_else(|| format!("cannot include \"{path}\""))
    }

    fn package(&self, name: &str) -> Result<String, String> {
        Ok(format!("/packages/{name}"))
    }

    fn variable(&self, name: &str) -> Option<String> {
        (name == "ROBOT").then(|| "arm".to_owned())
    }

    fn folder(&self) -> Option<String> {
        Some("/home".to_owned())
    }
}

fn expanded(body: &str) -> Result<String, String> {
    let text = format!("{HEAD}{body}</robot>");
    expand(&text, "robot.xacro", &[], &Given(HashMap::new())).map(|e| e.text).map_err(|e| e.to_string())
}

/// Collects an element without differences that are irrelevant in XML: order of attributes, comments, whitespace, namespaces.
fn canonical(node: Node<'_, '_>, out: &mut Vec<String>) {
    let attributes: BTreeMap<&str, &str> = node.attributes().map(|a| (a.name(), a.value())).collect();
    out.push(format!("<{}", node.tag_name().name()));
    out.extend(attributes.iter().map(|(name, value)| format!("{name}={value}")));
    for child in node.children() {
        match child.text().map(str::trim).filter(|_| child.is_text()) {
            Some("") => {}
            Some(text) => out.push(text.to_owned()),
            None if child.is_element() => canonical(child, out),
            None => {}
        }
    }
    out.push(">".to_owned());
}

/// Returns whether two texts are equal, with numbers equal up to rounding: mathematical libraries differ in the last digit.
fn alike(ours: &str, theirs: &str) -> bool {
    let words = |text: &str| -> Vec<String> {
        text.split(|c: char| c.is_whitespace() || "=,[]()'".contains(c)).map(str::to_owned).collect()
    };
    let (a, b) = (words(ours), words(theirs));
    a.len() == b.len()
        && a.iter().zip(&b).all(|(a, b)| {
            a == b
                || matches!((a.parse::<f64>(), b.parse::<f64>()), (Ok(a), Ok(b)) if (a - b).abs() <= 1e-14 * a.abs().max(1.0))
        })
}

#[test]
fn generated_texts_expand_as_by_the_package_of_python() {
    #[derive(serde::Deserialize)]
    struct Case {
        files: BTreeMap<String, String>,
        arguments: BTreeMap<String, String>,
        expected: Option<String>,
    }
    let Some(output) = run("oracle_xacro.py", &["300", "3"]) else { return };
    let cases: Vec<Case> = serde_json::from_str(&output).unwrap();
    let mut compared = 0;
    for case in &cases {
        let arguments: Vec<_> = case.arguments.clone().into_iter().collect();
        let files = Given(case.files.clone().into_iter().collect());
        let text = &case.files["model.xacro"];
        let ours = expand(text, "model.xacro", &arguments, &files);
        match (&ours, &case.expected) {
            (Err(_), None) => {}
            (Ok(ours), Some(expected)) => {
                let (mut a, mut b) = (Vec::new(), Vec::new());
                canonical(Document::parse(&ours.text).unwrap().root_element(), &mut a);
                canonical(Document::parse(expected).unwrap().root_element(), &mut b);
                let same = a.len() == b.len() && a.iter().zip(&b).all(|(a, b)| alike(a, b));
                assert!(same, "{text}\n{}\n{expected}", ours.text);
                compared += 1;
            }
            _ => panic!("{text}\nours: {ours:?}\nexpected: {:?}", case.expected),
        }
    }
    assert!(10 * compared > 9 * cases.len(), "{compared} of {} cases have an expansion", cases.len());
}

#[test]
fn substitutions_see_the_surroundings() {
    let text = expanded("<a b='$(find arm_description)/x $(env ROBOT) $(optenv NONE a b) $(cwd)'/>").unwrap();
    assert!(text.contains("b=\"/packages/arm_description/x arm a b /home\""), "{text}");
    let text = expand(
        &format!("{HEAD}<xacro:arg name='n' default='1'/><a b='$(arg n)'/></robot>"),
        "r",
        &[("n".to_owned(), "2".to_owned()), ("m".to_owned(), "3".to_owned())],
        &NoFiles,
    );
    let text = text.unwrap();
    assert!(text.text.contains("b=\"2\""), "{}", text.text);
    assert!(text.warnings[0].contains("no argument \"m\""), "{:?}", text.warnings);
}

#[test]
fn errors_name_place_and_next_step() {
    let cases = [
        ("<a b='${x}'/>", "line 1: <a>: expression \"x\": name \"x\" is not defined"),
        ("\n<xacro:arm/>", "line 2: <xacro:arm>: the macro \"arm\" is not defined before it"),
        (
            "<a b='${(lambda x: x)(1)}'/>",
            "lambda is not supported: expand the file by 'xacro robot.xacro > robot.urdf'",
        ),
        ("<a b='${1 / 0}'/>", "division by zero"),
        ("<a b='${2 ** 100}'/>", "more than 64 bits is not supported"),
        ("<a b='${1 + \"m\"}'/>", "\"m\" is a text"),
        ("<a b='${1'/>", "is not closed"),
        ("<a b='$(arg side)'/>", "the argument \"side\" is not given"),
        ("<a b='$(env HOME)'/>", "HOME is not set"),
        ("<a b='$(rospack arm)'/>", "expected arg, find, env"),
        ("<xacro:include filename='no.xacro'/>", "<xacro:include>: cannot include \"no.xacro\""),
        ("<xacro:include filename='*.xacro'/>", "a pattern as the name of a file is not supported"),
        (
            "<xacro:property name='a' value='${b}'/><xacro:property name='b' value='${a}'/><x y='${a}'/>",
            "refers to itself",
        ),
        ("<xacro:property name='a b' value='1'/>", "is not a property name"),
        ("<xacro:macro name='m' params='a'/><xacro:m/>", "it needs the parameter \"a\""),
        ("<xacro:macro name='m' params=''/><xacro:m a='1'/>", "the macro has no parameter \"a\""),
        ("<xacro:macro name='m' params='*a'/><xacro:m/>", "it needs a block for *a"),
        ("<xacro:macro name='m' params=''/><xacro:m><x/></xacro:m>", "does not take the block <x>"),
        ("<xacro:insert_block name='a'/>", "there is no block \"a\""),
        ("<xacro:if value='maybe'/>", "neither true nor false"),
        ("<xacro:element xacro:name='a b'/>", "is not an element name"),
        ("<a b='${xacro.fatal(\"stop\", 1)}'/>", "stop 1"),
        ("<a b='${open(\"/etc/passwd\")}'/>", "name \"open\" is not defined"),
        ("<a b='${a.__class__}'/><xacro:property name='a' value='1'/>", "not defined"),
        ("<a b='${math.__dict__}'/>", "is not allowed"),
    ];
    for (body, expected) in cases {
        let message = expanded(body).unwrap_err();
        assert!(message.contains(expected), "{body}: {message}");
    }
}

/// Expansions that grow without bound end in an error.
#[test]
fn work_and_depth_are_bounded() {
    let property = |k: usize, value: &str| format!("<xacro:property name='p{k}' value='{value}'/>");
    let doubled = |first: &str, next: fn(usize) -> String, last: &str| {
        let mut text = property(0, first);
        (1..60).for_each(|k| text += &property(k, &next(k - 1)));
        format!("{text}<a b='{last}'/>")
    };
    let mut macros = "<xacro:macro name='m0'><a/><a/></xacro:macro>".to_owned();
    for k in 1..60 {
        let _ = write!(macros, "<xacro:macro name='m{k}'><xacro:m{0}/><xacro:m{0}/></xacro:macro>", k - 1);
    }
    let lists = |last: &str| doubled("${[1, 1]}", |k| format!("${{[p{k}, p{k}]}}"), last);
    let cases = [
        macros + "<xacro:m59/>",
        doubled("aaaa", |k| format!("${{p{k}}}${{p{k}}}"), "${p59}"),
        lists("${p59}"),
        lists("${p59 == p59}"),
        lists("${sorted([p59, p59])}"),
        lists("${p58 in p59 or p59.index(2)}"),
        "<xacro:macro name='m' params='n'><xacro:m n='${n + 1}'/></xacro:macro><xacro:m n='0'/>".into(),
        "<xacro:macro name='m' params='*b'><xacro:m><xacro:insert_block name='b'/></xacro:m></xacro:macro><xacro:m><q/></xacro:m>"
            .into(),
        "<a b='${\"a\" * 10**12}'/>".into(),
        "<a b='${[0] * 10**12}'/>".into(),
        "<a b='${[x for x in range(10**12)]}'/>".into(),
        format!("<a b='${{{}1{}}}'/>", "(".repeat(9000), ")".repeat(9000)),
        format!("<a b='${{{}1}}'/>", "-".repeat(9000)),
        format!("<a b='${{{}1}}'/>", "1 + ".repeat(9000)),
        (1..5000).fold(property(0, "1"), |text, k| text + &property(k, &format!("${{p{}}}", k - 1))) + "<a b='${p4999}'/>",
    ];
    for body in cases {
        let message = expanded(&body).unwrap_err();
        let bounded = ["expands to more", "nested deeper", "more than", "levels"];
        assert!(bounded.iter().any(|b| message.contains(b)), "{}: {message}", &body[..body.len().min(200)]);
        assert!(message.len() < 500, "{message}");
    }
    let circle = Given(HashMap::from([(
        "a.xacro".to_owned(),
        format!("{HEAD}<xacro:include filename='a.xacro'/></robot>"),
    )]));
    let message = expand(&circle.0["a.xacro"], "a.xacro", &[], &circle).unwrap_err().to_string();
    assert!(message.contains("nested deeper"), "{message}");
    let yaml = (1..60).fold("a0: &a0 [1, 1]\n".to_owned(), |text, k| {
        text + &format!("a{k}: &a{k} [*a{0}, *a{0}]\n", k - 1)
    });
    let laughs = Given(HashMap::from([("x.yaml".to_owned(), yaml)]));
    let text = format!("{HEAD}<a b='${{xacro.load_yaml(\"x.yaml\").a59}}'/></robot>");
    let message = expand(&text, "a.xacro", &[], &laughs).unwrap_err().to_string();
    assert!(message.contains("expands to more"), "{message}");
}

#[test]
fn plain_urdf_is_no_xacro() {
    assert!(!is_xacro("<robot name='r' xmlns:xacro='http://ros.org/wiki/xacro'><link name='a'/></robot>"));
    assert!(!is_xacro("<robot name='r'><!-- <xacro:include filename='x'/> --><link name='${a}'/></robot>"));
    assert!(!is_xacro("schema = 'xmlns:xacro ${a}'"));
    assert!(is_xacro("<robot name='r' xmlns:xacro='http://ros.org/wiki/xacro'><link name='${a}'/></robot>"));
    assert!(is_xacro("<robot><xacro:arm/></robot>"));
}

/// Texts with no other command than `$(optenv …)` were not expanded.
#[test]
fn every_command_but_find_makes_a_text_xacro() {
    for value in ["${a}", "$(arg a)", "$(optenv M 2)", "$(env M)", "$(eval 1 + 1)", "$(cwd)"] {
        let body = format!("<mass value='{value}'/></robot>");
        assert!(is_xacro(&format!("{HEAD}{body}")), "{value}");
        let plain = format!("<robot name='r'>{body}");
        assert!(has_expressions(&plain) && !is_xacro(&plain), "{value}");
        assert!(!has_expressions(&format!("<robot name='r'><!-- {value} --></robot>")), "{value}");
    }
    // Expanded texts may contain these.
    for value in ["$(find arm)/a.stl", "$5", "$()", "$(", "$"] {
        assert!(!is_xacro(&format!("{HEAD}<mesh filename='{value}'/></robot>")), "{value}");
    }
}

/// A text whose prefix is not declared expands as with the declaration, with a warning that names the line.
#[test]
fn a_prefix_that_is_not_declared_is_warned_about() {
    let part = "<robot><xacro:macro name='a'><link name='b'/></xacro:macro></robot>".to_owned();
    let files = Given(HashMap::from([("part.xacro".to_owned(), part)]));
    let body = "<xacro:include filename='part.xacro'/>\n<xacro:a/></robot>";
    let declared = format!("<robot name='r' xmlns:xacro='http://www.ros.org/wiki/xacro'>\n{body}");
    let plain = format!("<!-- <a> -->\n<robot name='r'>\n{body}");
    let expected = expand(&declared, "r.xacro", &[], &files).unwrap();
    let found = expand(&plain, "r.xacro", &[], &files).unwrap();
    assert!(
        found.text.contains("<link name=\"b\"/>") && alike(&found.text, &expected.text),
        "{}",
        found.text
    );
    let warning =
        "the prefix \"xacro\" is not declared: taken as xmlns:xacro=\"http://www.ros.org/wiki/xacro\"";
    assert_eq!(found.warnings, [format!("line 3: {warning}"), format!("part.xacro: line 1: {warning}")]);
    assert_eq!(expected.warnings, [format!("part.xacro: line 1: {warning}")]);
}
