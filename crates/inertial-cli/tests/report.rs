//! The pages of `--report`: whole, self-contained, the same bytes each time. A browser opens them in `browser/`.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Folder, inertial, refused, run, urdf};
use serde_json::Value;

/// The data that a page carries.
fn data(page: &str) -> Value {
    let start = page.find("id=\"data\">").unwrap() + "id=\"data\">".len();
    let end = start + page[start..].find("</script>").unwrap();
    serde_json::from_str(&page[start..end]).unwrap()
}

#[test]
fn a_page_carries_the_result_and_how_to_repeat_it() {
    let folder = Folder::new();
    let path = folder.path("page.html");
    let args = ["analyze", "builtin:four-bar", "--json", "--report", path.to_str().unwrap()];
    let result = run(&args);
    assert_eq!((result.status, result.stderr.as_str()), (0, ""));
    let page = std::fs::read_to_string(&path).unwrap();
    let found = data(&page);
    assert_eq!(found["analysis"], result.json());
    assert_eq!(found["provenance"]["command"], format!("inertial {}", args.join(" ")));
    assert_eq!(found["provenance"]["inputs"][0]["sha256"].as_str().unwrap().len(), 64);
    for outside in ["src=\"http", "href=\"http", "@import", "url(http"] {
        assert!(!page.contains(outside), "{outside}");
    }
    run(&args);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), page);
}

#[test]
fn a_name_cannot_break_out_of_the_data() {
    let folder = Folder::new();
    let name = "&lt;/script&gt;&lt;script&gt;alert(1)&lt;/script&gt;";
    let text = urdf(&inertial("1", "0.1", "0.1", "0.3")).replace("name=\"two\"", &format!("name=\"{name}\""));
    let (model, path) = (folder.file("robot.urdf", text), folder.path("page.html"));
    let result = run(&["check", &model, "--report", path.to_str().unwrap()]);
    assert_eq!((result.status, result.stderr.as_str()), (1, ""));
    let page = std::fs::read_to_string(&path).unwrap();
    assert!(!page.contains("<script>alert"));
    assert_eq!(data(&page)["title"], "</script><script>alert(1)</script>");
    assert_eq!(data(&page)["check"]["consistent"], false);
}

#[test]
fn a_page_belongs_to_one_model() {
    let line = refused(&["check", "builtin:puma560", "builtin:scara", "--report", "page.html"]);
    assert_eq!(line, "--report takes one model");
}
