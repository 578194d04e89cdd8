//! COLLADA files (`.dae`): the triangles of a scene, in metres, with the axes of the file.
//!
//! Implemented here because crates that read COLLADA neither place geometries by the nodes of the scene nor read
//! polygons of any size.

use std::collections::HashMap;
use std::str::FromStr;

use nalgebra::{Matrix4, Unit, Vector3};
use roxmltree::{Document, Node, ParsingOptions};

use super::Mesh;
use super::reading::refused;
use super::scene::{Scene, fan, indexed, strip};
use crate::Result;

/// Maximum number of elements in a file.
const MOST_ELEMENTS: u32 = 4_000_000;

/// Reads a COLLADA file.
pub(super) fn parse(text: &str) -> Result<Mesh> {
    let options = ParsingOptions { nodes_limit: MOST_ELEMENTS, ..ParsingOptions::default() };
    let document = Document::parse_with_options(text, options).or_else(|e| refused(e.to_string()))?;
    let with_id = document.descendants().filter_map(|node| Some((node.attribute("id")?, node)));
    let file = File { elements: with_id.collect() };
    let unit = child(document.root_element(), "asset").and_then(|asset| child(asset, "unit"));
    let metres = unit.and_then(|u| u.attribute("meter")).map_or(Some(1.0), |text| text.trim().parse().ok());
    let Some(metres) = metres.filter(|m: &f64| *m > 0.0 && m.is_finite()) else {
        return refused("has a unit that is not a length");
    };
    let mut scene = Scene::default();
    let instance = child(document.root_element(), "scene").and_then(|s| child(s, "instance_visual_scene"));
    let Some(url) = instance.and_then(|i| i.attribute("url")) else {
        // The file contains geometries without a scene.
        for geometry in document.descendants().filter(|n| n.has_tag_name_of("geometry")) {
            file.geometry(geometry, &mut scene, &Matrix4::new_scaling(metres))?;
        }
        return Ok(scene.mesh());
    };
    let visual_scene = file.find("visual_scene", url)?;
    for node in visual_scene.children().filter(|n| n.has_tag_name_of("node")) {
        file.node(node, &mut scene, &Matrix4::new_scaling(metres), 1)?;
    }
    Ok(scene.mesh())
}

/// Comparison of tag names without the namespace of the version.
trait Named {
    fn has_tag_name_of(&self, name: &str) -> bool;
}

impl Named for Node<'_, '_> {
    fn has_tag_name_of(&self, name: &str) -> bool {
        self.is_element() && self.tag_name().name() == name
    }
}

fn child<'a, 'd>(node: Node<'a, 'd>, name: &str) -> Option<Node<'a, 'd>> {
    node.children().find(|n| n.has_tag_name_of(name))
}

/// Parses the numbers in an element's text.
fn numbers<T: FromStr>(node: Node<'_, '_>, scene: &mut Scene) -> Result<Vec<T>> {
    let text = node.text().unwrap_or_default();
    scene.read(text.len())?;
    let numbers: Option<Vec<T>> = text.split_ascii_whitespace().map(|word| word.parse().ok()).collect();
    numbers.map_or_else(
        || refused(format!("has a {} that is not a list of numbers", node.tag_name().name())),
        Ok,
    )
}

/// Returns the transformation of an element; `None` if it is not a transformation.
fn transformation(node: Node<'_, '_>, scene: &mut Scene) -> Result<Option<Matrix4<f64>>> {
    let name = node.tag_name().name();
    if !["matrix", "translate", "scale", "rotate"].contains(&name) {
        return Ok(None);
    }
    let x: Vec<f64> = numbers(node, scene)?;
    Ok(Some(match (name, &x[..]) {
        ("matrix", x) if x.len() == 16 => Matrix4::from_row_slice(x),
        ("translate", &[x, y, z]) => Matrix4::new_translation(&Vector3::new(x, y, z)),
        ("scale", &[x, y, z]) => Matrix4::new_nonuniform_scaling(&Vector3::new(x, y, z)),
        ("rotate", &[x, y, z, degrees]) => match Unit::try_new(Vector3::new(x, y, z), 1e-12) {
            Some(axis) => Matrix4::from_axis_angle(&axis, degrees.to_radians()),
            None => Matrix4::identity(),
        },
        _ => return refused(format!("has a {name} of {} numbers", x.len())),
    }))
}

/// Elements of a file by their ids.
struct File<'a, 'd> {
    elements: HashMap<&'a str, Node<'a, 'd>>,
}

impl<'a, 'd> File<'a, 'd> {
    /// Finds the element of this kind that a URL within the file refers to.
    fn find(&self, kind: &str, url: &str) -> Result<Node<'a, 'd>> {
        let id = url.trim_start_matches('#');
        let found = self.elements.get(id).copied().filter(|n| n.has_tag_name_of(kind));
        found.map_or_else(|| refused(format!("refers to a {kind} {id:?} that does not exist")), Ok)
    }

    fn node(&self, node: Node<'a, 'd>, scene: &mut Scene, place: &Matrix4<f64>, level: usize) -> Result<()> {
        scene.enter(level)?;
        let mut place = *place;
        for part in node.children().filter(Node::is_element) {
            if let Some(own) = transformation(part, scene)? {
                place *= own;
            }
        }
        for part in node.children().filter(Node::is_element) {
            match (part.tag_name().name(), part.attribute("url")) {
                ("node", _) => self.node(part, scene, &place, level + 1)?,
                ("instance_node", Some(url)) => {
                    self.node(self.find("node", url)?, scene, &place, level + 1)?;
                }
                ("instance_geometry", Some(url)) => {
                    scene.enter(level)?;
                    self.geometry(self.find("geometry", url)?, scene, &place)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Adds the triangles of a geometry to the scene; lines and splines are skipped.
    fn geometry(&self, geometry: Node<'a, 'd>, scene: &mut Scene, place: &Matrix4<f64>) -> Result<()> {
        let Some(mesh) = child(geometry, "mesh") else { return Ok(()) };
        let vertices = child(mesh, "vertices").and_then(|v| input(v, "POSITION"));
        let Some(source) = vertices.and_then(|v| v.attribute("source")) else { return Ok(()) };
        let points = self.points(source, scene)?;
        let name = geometry.attribute("id").unwrap_or("a geometry");
        let mut all = Vec::new();
        for part in mesh.children().filter(Node::is_element) {
            let kind = part.tag_name().name();
            if !["triangles", "trifans", "tristrips", "polylist", "polygons"].contains(&kind) {
                continue;
            }
            all.extend(triangles(part, kind, (points.len(), name), scene)?);
        }
        scene.add(&Mesh { points, triangles: all }, place);
        Ok(())
    }

    fn points(&self, source: &str, scene: &mut Scene) -> Result<Vec<Vector3<f64>>> {
        let source = self.find("source", source)?;
        let Some(array) = child(source, "float_array") else { return refused("has points without numbers") };
        let accessor = child(source, "technique_common").and_then(|t| child(t, "accessor"));
        let stride = accessor.and_then(|a| a.attribute("stride")).map_or(Some(3), |s| s.parse().ok());
        let Some(stride) = stride.filter(|s: &usize| (3..=1000).contains(s)) else {
            return refused("has points without three coordinates");
        };
        let x: Vec<f64> = numbers(array, scene)?;
        Ok(x.chunks_exact(stride).map(|p| Vector3::new(p[0], p[1], p[2])).collect())
    }
}

/// Returns the input with this semantic.
fn input<'a, 'd>(node: Node<'a, 'd>, semantic: &str) -> Option<Node<'a, 'd>> {
    node.children().find(|n| n.has_tag_name_of("input") && n.attribute("semantic") == Some(semantic))
}

/// Returns the triangles of a list of primitives; polygons are assumed to be convex.
fn triangles(
    part: Node<'_, '_>,
    kind: &str,
    (points, name): (usize, &str),
    scene: &mut Scene,
) -> Result<Vec<[usize; 3]>> {
    let offset = |n: Node<'_, '_>| n.attribute("offset").and_then(|o| o.parse::<usize>().ok());
    let inputs = part.children().filter(|n| n.has_tag_name_of("input"));
    let width = inputs.filter_map(offset).max().unwrap_or(0).saturating_add(1);
    let first = input(part, "VERTEX").and_then(offset).unwrap_or(0);
    let mut out = Vec::new();
    for p in part.children().filter(|n| n.has_tag_name_of("p")) {
        let all: Vec<usize> = numbers(p, scene)?;
        let corners: Vec<usize> = all.chunks_exact(width).map(|corner| corner[first]).collect();
        let count = corners.len();
        out.extend(match kind {
            "triangles" => {
                indexed((0..count / 3).map(|k| [3 * k, 3 * k + 1, 3 * k + 2]), &corners, points, name)?
            }
            "tristrips" => indexed(strip(count), &corners, points, name)?,
            "polylist" => {
                let sizes: Vec<usize> =
                    child(part, "vcount").map_or(Ok(Vec::new()), |n| numbers(n, scene))?;
                let ends = sizes.iter().try_fold(0usize, |sum, size| sum.checked_add(*size));
                if ends.is_none_or(|end| end > count) {
                    return refused(format!("{name} has polygons of more corners than it lists"));
                }
                let mut start = 0;
                let polygons = sizes.iter().flat_map(|&size| {
                    let polygon = fan(start, size);
                    start += size;
                    polygon
                });
                indexed(polygons, &corners, points, name)?
            }
            _ => indexed(fan(0, count), &corners, points, name)?,
        });
    }
    Ok(out)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::mesh::MassDistribution;

    /// Returns a file with a cuboid of 2 × 3 × 4 mm about the origin, as quadrilaterals with normals, placed by the
    /// scene.
    fn cube(node: &str) -> String {
        let points = (0..8).map(|k| {
            let x = |bit: usize, size: f64| if k >> bit & 1 == 1 { 0.5 * size } else { -0.5 * size };
            format!("{} {} {}", x(0, 2.0), x(1, 3.0), x(2, 4.0))
        });
        let points: Vec<String> = points.collect();
        let faces = [[0, 2, 3, 1], [4, 5, 7, 6], [0, 1, 5, 4], [2, 6, 7, 3], [0, 4, 6, 2], [1, 3, 7, 5]];
        let corners: Vec<String> = faces.iter().flatten().map(|c| format!("{c} 0")).collect();
        format!(
            r##"<?xml version="1.0"?>
<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
<asset><unit name="millimeter" meter="0.001"/><up_axis>Y_UP</up_axis></asset>
<library_geometries><geometry id="cube"><mesh>
<source id="points"><float_array id="a" count="24">{}</float_array>
<technique_common><accessor source="#a" count="8" stride="3"/></technique_common></source>
<vertices id="v"><input semantic="POSITION" source="#points"/></vertices>
<polylist count="6"><input semantic="VERTEX" source="#v" offset="0"/><input semantic="NORMAL" source="#n" offset="1"/>
<vcount>4 4 4 4 4 4</vcount><p>{}</p></polylist></mesh></geometry></library_geometries>
<library_nodes><node id="half"><scale>0.5 0.5 0.5</scale><instance_geometry url="#cube"/></node></library_nodes>
<library_visual_scenes><visual_scene id="s">{node}</visual_scene></library_visual_scenes>
<scene><instance_visual_scene url="#s"/></scene></COLLADA>"##,
            points.join(" "),
            corners.join(" ")
        )
    }

    #[test]
    fn scenes_place_geometries() {
        let text = cube(
            r##"<node><translate>10 0 0</translate><rotate>0 0 1 90</rotate><instance_geometry url="#cube"/>
                <node><matrix>1 0 0 0 0 1 0 0 0 0 1 100 0 0 0 1</matrix><instance_node url="#half"/></node></node>"##,
        );
        let mesh = Mesh::parse(text.as_bytes()).unwrap();
        assert_eq!(mesh.triangles.len(), 24);
        // Rotated by 90°: 3 mm along x, 2 mm along y; the smaller cuboid is 100 mm above.
        let extent = mesh.extent().unwrap();
        assert!((extent.lower - Vector3::new(8.5e-3, -1e-3, -2e-3)).norm() < 1e-15, "{extent:?}");
        assert!((extent.upper - Vector3::new(11.5e-3, 1e-3, 101e-3)).norm() < 1e-15, "{extent:?}");
        // Solid, with faces outwards: 24 mm³ and an eighth of it.
        let volume = mesh.inertia(MassDistribution::Exact).unwrap().mass;
        assert!((volume - 27e-9).abs() < 1e-20, "{volume}");
        let mirrored = cube(r##"<node><scale>-1 1 1</scale><instance_geometry url="#cube"/></node>"##);
        let volume = Mesh::parse(mirrored.as_bytes()).unwrap().inertia(MassDistribution::Exact).unwrap().mass;
        assert!((volume - 24e-9).abs() < 1e-20, "{volume}");
    }

    #[test]
    fn scenes_without_end_are_refused() {
        let text = cube(r##"<node id="again"><instance_node url="#again"/></node>"##);
        let error = Mesh::parse(text.as_bytes()).unwrap_err().to_string();
        assert!(error.contains("levels of nodes"), "{error}");
        let twice = r##"<instance_node url="#again"/>"##.repeat(2);
        let text = cube(&format!(r#"<node id="again">{twice}</node>"#));
        assert!(Mesh::parse(text.as_bytes()).is_err());
        for (from, to) in
            [("4 4 4 4 4 4", "4 4 4 4 4 9"), ("meter=\"0.001\"", "meter=\"0\""), ("<p>0 0", "<p>99 0")]
        {
            let text = cube(r##"<node><instance_geometry url="#cube"/></node>"##).replace(from, to);
            let error = Mesh::parse(text.as_bytes()).unwrap_err().to_string();
            assert_eq!(error.lines().count(), 1, "{error}");
        }
        let gone = cube(r##"<node><instance_geometry url="#other"/></node>"##);
        assert!(Mesh::parse(gone.as_bytes()).unwrap_err().to_string().contains("does not exist"));
    }
}
