//! Expansion of elements.

use std::rc::Rc;

use super::super::xml::quoted;
use super::scope::{Macro, Macros, Scopes};
use super::tree::{Element, Node};
use super::value::{Entry, Scope, Value};
use super::{ELEMENT, Fault, Level, Machine, parameters};
use crate::{Error, Result};

/// Result of expanding an element.
#[derive(Default)]
struct Output {
    attributes: Vec<(String, String)>,
    children: Vec<Node>,
}

impl Output {
    fn set(&mut self, name: &str, value: String) {
        match self.attributes.iter_mut().find(|(own, _)| own == name) {
            Some((_, own)) => *own = value,
            None => self.attributes.push((name.to_owned(), value)),
        }
    }

    /// Adds the namespaces that an element declares.
    fn import_namespaces(&mut self, attributes: &[(String, String)]) {
        for (name, value) in attributes {
            if name.starts_with("xmlns:")
                && name != "xmlns:xacro"
                && !self.attributes.iter().any(|(own, _)| own == name)
            {
                self.attributes.push((name.clone(), value.clone()));
            }
        }
    }
}

impl Machine<'_> {
    /// Expands the root element.
    pub(super) fn root(&self, root: &Rc<Element>, scopes: &Scopes) -> Result<Rc<Element>> {
        let mut expanded = self.element(root, scopes)?;
        if let Some(target) = root.attribute("xacro:targetNamespace") {
            expanded.attributes.insert(0, ("xmlns".to_owned(), target.to_owned()));
        }
        Ok(Rc::new(expanded))
    }

    /// Creates an error located at an element.
    fn at(&self, element: &Element, fault: Fault) -> Error {
        if fault.supported {
            return element.error(fault.message);
        }
        let (feature, file) = (fault.message, &self.main);
        element.error(format!(
            "{feature} is not supported: expand the file by 'xacro {file} > robot.urdf' (part of ROS; 'pip install xacro')"
        ))
    }

    fn enter(&self, element: &Element) -> Result<Level<'_>> {
        self.spend(ELEMENT).and_then(|()| self.deeper()).map_err(|fault| self.at(element, fault))
    }

    /// Evaluates a text at an element.
    fn value(&self, element: &Element, text: &str, scope: &Rc<Scope>) -> Result<Value> {
        self.text(text, scope).map_err(|fault| self.at(element, fault))
    }

    fn written(&self, element: &Element, text: &str, scope: &Rc<Scope>) -> Result<String> {
        let value = self.value(element, text, scope)?;
        self.spend_on(&value).map_err(|fault| self.at(element, fault))?;
        Ok(value.to_string())
    }

    /// Evaluates a text at an element as a boolean.
    fn truth(&self, element: &Element, text: &str, scope: &Rc<Scope>) -> Result<bool> {
        let value = self.value(element, text, scope)?;
        match &value {
            Value::Text(word) => match &**word {
                "true" | "True" => Ok(true),
                "false" | "False" => Ok(false),
                word => match word.trim().parse::<i64>() {
                    Ok(number) => Ok(number != 0),
                    Err(_) => Err(element.error(format!(
                        "{} is {}, which is neither true nor false",
                        quoted(text),
                        quoted(word)
                    ))),
                },
            },
            other => Ok(other.truth()),
        }
    }

    /// Expands an element that does not belong to xacro.
    fn element(&self, element: &Rc<Element>, scopes: &Scopes) -> Result<Element> {
        let _level = self.enter(element)?;
        let mut out = Output::default();
        for (name, value) in &element.attributes {
            if !name.starts_with("xacro:") && name != "xmlns:xacro" {
                out.set(name, self.written(element, value, &scopes.names)?);
            }
        }
        self.children(element, scopes, &mut out)?;
        let Output { attributes, children } = out;
        Ok(Element { tag: element.tag.clone(), attributes, children, origin: element.origin.clone() })
    }

    /// Expands the content of an element.
    fn children(&self, element: &Element, scopes: &Scopes, out: &mut Output) -> Result<()> {
        for node in &element.children {
            match node {
                Node::Text(text) if text.trim().is_empty() => {}
                Node::Text(text) => {
                    let text = self.written(element, text, &scopes.names)?;
                    out.children.push(Node::Text(text.into()));
                }
                Node::Element(child) => match child.tag.strip_prefix("xacro:") {
                    None => out.children.push(Node::Element(Rc::new(self.element(child, scopes)?))),
                    Some(tag) => self.special(tag, child, scopes, out)?,
                },
            }
        }
        Ok(())
    }

    /// Expands the content of an element into another; attributes that are set inside are lost, as in the original xacro.
    fn content(&self, element: &Rc<Element>, scopes: &Scopes, out: &mut Output) -> Result<()> {
        let _level = self.enter(element)?;
        let mut inner = Output::default();
        self.children(element, scopes, &mut inner)?;
        out.children.append(&mut inner.children);
        Ok(())
    }

    /// Expands a xacro element.
    fn special(&self, tag: &str, element: &Rc<Element>, scopes: &Scopes, out: &mut Output) -> Result<()> {
        match tag {
            "property" => self.property(element, &scopes.names),
            "macro" => define_macro(element, &scopes.macros),
            "arg" => {
                let (name, default) = (element.required("name")?, element.required("default")?);
                self.known.borrow_mut().insert(name.to_owned());
                if !self.arguments.borrow().contains_key(name) {
                    let value = self.written(element, default, &scopes.names)?;
                    self.arguments.borrow_mut().insert(name.to_owned(), value);
                }
                Ok(())
            }
            "if" | "unless" => {
                let condition = self.truth(element, element.required("value")?, &scopes.names)?;
                if condition == (tag == "if") { self.content(element, scopes, out) } else { Ok(()) }
            }
            "include" => self.include(element, scopes, out),
            "insert_block" => {
                let name = element.required("name")?;
                if let Some(block) = scopes.names.block(&format!("**{name}")) {
                    self.content(&block, scopes, out)
                } else if let Some(block) = scopes.names.block(&format!("*{name}")) {
                    self.block(&block, scopes, out)
                } else {
                    Err(element.error(format!("there is no block \"{name}\"")))
                }
            }
            "element" => {
                let name = self.written(element, element.required("xacro:name")?, &scopes.names)?;
                if !is_xml_name(&name) {
                    return Err(element.error(format!("{} is not an element name", quoted(&name))));
                }
                let named = Rc::new(Element {
                    tag: name,
                    attributes: element.attributes.clone(),
                    children: element.children.clone(),
                    origin: element.origin.clone(),
                });
                match named.tag.strip_prefix("xacro:") {
                    Some(tag) => {
                        let _level = self.enter(element)?;
                        self.special(tag, &named, scopes, out)
                    }
                    None => self.block(&named, scopes, out),
                }
            }
            "attribute" => {
                let name = self.written(element, element.required("name")?, &scopes.names)?;
                if !is_xml_name(&name) {
                    return Err(element.error(format!("{} is not an attribute name", quoted(&name))));
                }
                let value = self.written(element, element.required("value")?, &scopes.names)?;
                out.set(&name, value);
                Ok(())
            }
            "call" => {
                let name = self.written(element, element.required("macro")?, &scopes.names)?;
                self.call(&name, element, scopes, out)
            }
            name => self.call(name, element, scopes, out),
        }
    }

    /// Expands an element of any kind.
    fn block(&self, block: &Rc<Element>, scopes: &Scopes, out: &mut Output) -> Result<()> {
        out.children.push(Node::Element(Rc::new(self.element(block, scopes)?)));
        Ok(())
    }

    fn property(&self, element: &Rc<Element>, scope: &Rc<Scope>) -> Result<()> {
        let name = self.written(element, element.required("name")?, scope)?;
        let is_name = name.starts_with(|c: char| c.is_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_alphanumeric() || c == '_')
            && !name.starts_with("__");
        if !is_name {
            return Err(element.error(format!("{} is not a property name", quoted(&name))));
        }
        let flag = |attribute: &str, otherwise: bool| match element.attribute(attribute) {
            Some(text) => self.truth(element, text, scope),
            None => Ok(otherwise),
        };
        let (value, default) = (element.attribute("value"), element.attribute("default"));
        let remove = flag("remove", false)?;
        if usize::from(value.is_some()) + usize::from(default.is_some()) + usize::from(remove) > 1 {
            return Err(element.error("value, default and remove exclude each other"));
        }
        if remove && scope.find(&name).is_some() {
            scope.remove(&name);
            return Ok(());
        }
        if default.is_some() && scope.find(&name).is_some() {
            return Ok(());
        }
        let mut lazy = flag("lazy_eval", true)?;
        let target = match element.attribute("scope") {
            Some("global") => {
                lazy = false;
                scope.top()
            }
            Some("parent") => {
                lazy = false;
                scope.caller().ok_or_else(|| element.error("there is no scope around it"))?
            }
            _ => scope.clone(),
        };
        let Some(text) = value.or(default) else {
            target.set(&format!("**{name}"), Entry::Ready(Value::Block(element.clone())));
            return Ok(());
        };
        let value = if lazy { Value::text(text) } else { self.value(element, text, scope)? };
        let entry = match value.or_literal() {
            Value::Text(text) if lazy => Entry::Pending(text),
            value => Entry::Ready(value),
        };
        target.set(&name, entry);
        Ok(())
    }

    fn include(&self, element: &Rc<Element>, scopes: &Scopes, out: &mut Output) -> Result<()> {
        let name = self.written(element, element.required("filename")?, &scopes.names)?;
        let inner = match element.attribute("ns") {
            Some(space) => {
                let space = self.written(element, space, &scopes.names)?;
                let names = Scope::namespace(&scopes.names);
                scopes.names.set(&space, Entry::Ready(Value::Space(names.clone())));
                Scopes { names, macros: scopes.macros.add_space(&space) }
            }
            None => scopes.clone(),
        };
        let optional = match element.attribute("optional") {
            Some(text) => self.truth(element, text, &scopes.names)?,
            None => false,
        };
        let _level = self.enter(element)?;
        let path = self.resolve_path(&name);
        if path.contains(['*', '?', '[']) {
            return Err(self.at(element, Fault::unsupported("a pattern as the name of a file")));
        }
        let text = match self.other_file(&path) {
            Ok(text) => text,
            Err(_) if optional => return Ok(()),
            Err(fault) => return Err(self.at(element, fault)),
        };
        let super::Repaired { text, mut warnings, .. } = super::repaired(&text);
        let root = Element::parse(&super::with_xacro_prefix(text, &mut warnings), &path)?;
        for warning in warnings {
            self.warn(format!("{path}: {warning}"));
        }
        self.stack.borrow_mut().push(path);
        let expanded = self.element(&root, &inner)?;
        self.stack.borrow_mut().pop();
        out.import_namespaces(&expanded.attributes);
        out.children.extend(expanded.children);
        Ok(())
    }

    fn call(&self, name: &str, element: &Rc<Element>, scopes: &Scopes, out: &mut Output) -> Result<()> {
        let (around, found) = scopes
            .find_macro(name)
            .ok_or_else(|| element.error(format!("the macro \"{name}\" is not defined before it")))?;
        let _level = self.enter(element)?;
        let inner = Scopes { names: Scope::inside(&around.names), macros: Macros::inside(&around.macros) };
        self.arguments_of_call(&found, element, scopes, &inner.names)?;
        let mut expanded = Output::default();
        let result = self.children(&found.body, &inner, &mut expanded);
        inner.names.clear();
        result?;
        out.import_namespaces(&found.body.attributes);
        out.children.append(&mut expanded.children);
        Ok(())
    }

    /// Assigns the values of a macro's parameters.
    fn arguments_of_call(
        &self,
        found: &Macro,
        element: &Rc<Element>,
        scopes: &Scopes,
        inner: &Rc<Scope>,
    ) -> Result<()> {
        let mut missing: Vec<_> = found.parameters.iter().collect();
        let is_call = element.tag == "xacro:call";
        for (name, value) in &element.attributes {
            if name.starts_with("xmlns:") || name.starts_with("xacro:") || (is_call && name == "macro") {
                continue;
            }
            let place = missing.iter().position(|parameter| parameter.name == *name);
            let place =
                place.ok_or_else(|| element.error(format!("the macro has no parameter \"{name}\"")))?;
            missing.remove(place);
            let value = self.value(element, value, &scopes.names)?.or_literal();
            inner.set(name, Entry::Ready(value));
        }
        let mut given = Output::default();
        self.children(element, scopes, &mut given)?;
        let mut blocks = given.children.iter().filter_map(|node| match node {
            Node::Element(block) => Some(block),
            Node::Text(_) => None,
        });
        for parameter in missing {
            let name = &parameter.name;
            if name.starts_with('*') {
                let block =
                    blocks.next().ok_or_else(|| element.error(format!("it needs a block for {name}")))?;
                inner.set(name, Entry::Ready(Value::Block(block.clone())));
                continue;
            }
            let forwarded = if parameter.forward { scopes.names.find(name) } else { None };
            let value = match (forwarded, &parameter.default) {
                (Some((owner, entry)), _) => {
                    self.resolve(name, &owner, entry).map_err(|fault| self.at(element, fault))?
                }
                (None, Some(default)) => self.value(element, default, &scopes.names)?,
                (None, None) => return Err(element.error(format!("it needs the parameter \"{name}\""))),
            };
            inner.set(name, Entry::Ready(value.or_literal()));
        }
        match blocks.next() {
            Some(block) => Err(element.error(format!("the macro does not take the block <{}>", block.tag))),
            None => Ok(()),
        }
    }
}

fn define_macro(element: &Rc<Element>, macros: &Rc<Macros>) -> Result<()> {
    let name = element.required("name")?;
    let name = name.strip_prefix("xacro:").unwrap_or(name);
    if name == "call" || name.contains('.') {
        return Err(element.error(format!("{} is not a macro name", quoted(name))));
    }
    let parameters = parameters::read(element.attribute("params").unwrap_or_default());
    macros.define(name, Macro { body: element.clone(), parameters });
    Ok(())
}

/// Returns whether a name is valid for an element or attribute.
fn is_xml_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':'))
}
