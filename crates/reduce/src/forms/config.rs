//! The documents of producers and consumers: `writer.xml` and `reader.xml` of Figure 2, and the same as TOML.

use std::collections::{BTreeMap, BTreeSet};

use sieva_plan::Literal;
use sieva_types::{Error, ErrorKind, Result};

use super::node::{Field, Node, short};
use super::{read, toml, write, xml};
use crate::reduction::{Reduction, words};

/// What of ADIOS says how data are written, which is no matter of a reduction: passed over.
const PASSED_OVER: [&str; 7] = ["method", "transport", "buffer", "gwrite", "analysis", "mesh", "timesteps"];

/// What stands below a group in one form or the other, so that no property of it is called so.
const TABLES: [&str; 6] = ["var", "variable", "attribute", "global-bounds", "bounds", "reduction"];

/// What says of which array over all processes variables are parts.
const BOUNDS: &str = "global-bounds";

/// A form of a document.
#[derive(Clone, Copy)]
enum Form {
    Xml,
    Toml,
}

/// A document: what a producer has, or what a consumer asks for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    /// The language of the program that writes, `host-language`.
    pub language: Option<String>,
    /// Groups of variables.
    pub groups: Vec<Group>,
    /// What is asked for, in order; those that stood in a group are here as well.
    pub reductions: Vec<Reduction>,
}

/// Variables that are written together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Group {
    /// Its name.
    pub name: String,
    /// Further properties, such as `coordination-communicator`.
    pub properties: BTreeMap<String, String>,
    /// Its variables.
    pub variables: Vec<Variable>,
    /// Its attributes.
    pub attributes: Vec<Attribute>,
}

/// A variable of a group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// The type of its values, as ADIOS calls it.
    pub value_type: Option<String>,
    /// What it is called in the program that writes it.
    pub gwrite: Option<String>,
    /// Its dimensions, by names of other variables or as lengths; none for a single value.
    pub dimensions: Vec<String>,
    /// Where it is a part of an array over all processes: the dimensions of that array, and where the part begins.
    pub bounds: Option<Bounds>,
    /// Further properties.
    pub properties: BTreeMap<String, String>,
}

/// `global-bounds` of ADIOS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// Dimensions of the whole array.
    pub dimensions: Vec<String>,
    /// Where a part begins.
    pub offsets: Vec<String>,
}

/// An attribute of a group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attribute {
    /// Its name.
    pub name: String,
    /// Its path, type, value, or the variable that has it.
    pub properties: BTreeMap<String, String>,
}

impl Config {
    /// Reads a document of XML. It must be well-formed: Figure 2 as it is printed is not (`type=8` without quotes, elements
    /// that are not closed). How ADIOS is to write (`method`, `buffer` and the like) is passed over.
    ///
    /// # Errors
    /// `invalid-value` for what is not well-formed, says what means nothing, or is beyond the limits of this module; document
    /// types and entities of their own are refused.
    pub fn from_xml(text: &str) -> Result<Self> {
        let (name, node) = xml::read(text)?;
        if name != "adios-config" {
            return Err(node.wrong("the document is an 'adios-config'"));
        }
        Self::of_node(node)
    }

    /// The document as XML.
    ///
    /// # Errors
    /// Those of [`Reduction::check`]; `invalid-value` for what XML cannot have.
    pub fn to_xml(&self) -> Result<String> {
        Ok(format!("<?xml version=\"1.0\"?>\n{}", xml::write("adios-config", &self.node(Form::Xml)?, 0)?))
    }

    /// Reads a document of TOML.
    ///
    /// # Errors
    /// `invalid-value` for what is no TOML, says what means nothing, or is beyond the limits of this module.
    ///
    /// ```
    /// use sieva_reduce::{Reduction, forms::Config};
    ///
    /// let asked = Config::from_toml("reduction = [{ type = 'max', name = 'TEMP' }]")?;
    /// assert_eq!(asked.reductions, [Reduction::max("TEMP")]);
    /// # Ok::<(), sieva_types::Error>(())
    /// ```
    pub fn from_toml(text: &str) -> Result<Self> {
        Self::of_node(toml::read(text)?)
    }

    /// The document as TOML.
    ///
    /// # Errors
    /// Those of [`Reduction::check`]; `invalid-value` for names of dimensions that a list cannot have.
    pub fn to_toml(&self) -> Result<String> {
        Ok(toml::write(&self.node(Form::Toml)?))
    }

    /// What a consumer with this document gets: its reductions, and whole the variables without one (section III).
    pub fn asked(&self) -> Vec<Reduction> {
        let with_function: BTreeSet<&str> = self.reductions.iter().filter_map(Reduction::variable).collect();
        let variables = self.groups.iter().flat_map(|g| &g.variables);
        let whole =
            variables.filter(|v| !with_function.contains(v.name.as_str())).map(|v| Reduction::whole(&v.name));
        self.reductions.iter().cloned().chain(whole).collect()
    }

    fn of_node(mut node: Node) -> Result<Self> {
        let mut config = Self { language: node.take_text("host-language")?, ..Self::default() };
        for (name, child) in std::mem::take(&mut node.children) {
            match name.as_str() {
                "adios-group" => {
                    let group = Group::of_node(child, &mut config.reductions)?;
                    config.groups.push(group);
                }
                "rd" => config.reductions.push(read::reduction(child)?),
                other if PASSED_OVER.contains(&other) => {}
                _ => return Err(child.wrong("it means nothing here").hint("there are adios-group and rd")),
            }
        }
        node.finish()?;
        Ok(config)
    }

    fn node(&self, form: Form) -> Result<Node> {
        let mut node = Node::new("adios-config").text_if("host-language", self.language.as_ref());
        for group in &self.groups {
            node.children.push(("adios-group".to_owned(), group.node(form)?));
        }
        for reduction in &self.reductions {
            reduction.check()?;
            node.children.push(("rd".to_owned(), write::reduction(reduction)));
        }
        Ok(node)
    }
}

impl Group {
    fn of_node(mut node: Node, reductions: &mut Vec<Reduction>) -> Result<Self> {
        let mut group = Self { name: node.needed_text("name")?, ..Self::default() };
        for (name, mut child) in std::mem::take(&mut node.children) {
            match name.as_str() {
                "var" => group.variables.push(Variable::of_node(child, None)?),
                "attribute" => {
                    let name = child.needed_text("name")?;
                    group.attributes.push(Attribute { name, properties: properties(&mut child)? });
                }
                BOUNDS => {
                    let vars = std::mem::take(&mut child.children);
                    let bounds = Bounds::of_node(child)?;
                    for (name, var) in vars {
                        if name != "var" {
                            return Err(var.wrong("it means nothing here").hint("there is var"));
                        }
                        group.variables.push(Variable::of_node(var, Some(bounds.clone()))?);
                    }
                }
                "rd" => reductions.push(read::reduction(child)?),
                other if PASSED_OVER.contains(&other) => {}
                _ => {
                    let hint = "there are var, attribute, global-bounds and rd";
                    return Err(child.wrong("it means nothing here").hint(hint));
                }
            }
        }
        group.properties = properties(&mut node)?;
        Ok(group)
    }

    fn node(&self, form: Form) -> Result<Node> {
        let mut node = with_properties(Node::new("group").text("name", &self.name), &self.properties)?;
        for variable in &self.variables {
            node.children.push(variable.node(form)?);
        }
        for attribute in &self.attributes {
            let child = Node::new("attribute").text("name", &attribute.name);
            node.children.push(("attribute".to_owned(), with_properties(child, &attribute.properties)?));
        }
        Ok(node)
    }
}

impl Variable {
    /// A variable, within these bounds unless it has its own.
    fn of_node(mut node: Node, mut bounds: Option<Bounds>) -> Result<Self> {
        if let Some(place) = node.children.iter().position(|(name, _)| name == BOUNDS) {
            bounds = Some(Bounds::of_node(node.children.remove(place).1)?);
        }
        Ok(Self {
            name: node.needed_text("name")?,
            value_type: node.take_text("type")?,
            gwrite: node.take_text("gwrite")?,
            dimensions: dimensions(&mut node, "dimensions")?,
            bounds,
            properties: properties(&mut node)?,
        })
    }

    /// The variable as it stands in a group: in XML its bounds are around it, in TOML below it, so that its place is kept.
    fn node(&self, form: Form) -> Result<(String, Node)> {
        let node = Node::new("var").text("name", &self.name).text_if("type", self.value_type.as_ref());
        let node = with_names(node.text_if("gwrite", self.gwrite.as_ref()), "dimensions", &self.dimensions)?;
        let (mut inner, mut name) = (with_properties(node, &self.properties)?, "var");
        if let Some(bounds) = &self.bounds {
            let mut outer = with_names(Node::new(BOUNDS), "dimensions", &bounds.dimensions)?;
            outer = with_names(outer, "offsets", &bounds.offsets)?;
            match form {
                Form::Toml => inner.children.push((BOUNDS.to_owned(), outer)),
                Form::Xml => {
                    outer.children.push((name.to_owned(), inner));
                    (inner, name) = (outer, BOUNDS);
                }
            }
        }
        Ok((name.to_owned(), inner))
    }
}

impl Bounds {
    fn of_node(mut node: Node) -> Result<Self> {
        let dims = dimensions(&mut node, "dimensions")?;
        let bounds = Self { dimensions: dims, offsets: dimensions(&mut node, "offsets")? };
        node.finish()?;
        Ok(bounds)
    }
}

/// What is left of a node, as texts.
fn properties(node: &mut Node) -> Result<BTreeMap<String, String>> {
    let mut all = BTreeMap::new();
    for (key, field) in std::mem::take(&mut node.fields) {
        check_property(&key).map_err(|e| e.at(&node.place))?;
        let text = match field {
            Field::Written(text) | Field::Text(text) => text,
            Field::Literal(Literal::Text(text)) => text,
            Field::Literal(literal) => words::literal(&literal),
            _ => return Err(node.wrong(format!("'{key}' is a text"))),
        };
        all.insert(key, text);
    }
    node.finish()?;
    Ok(all)
}

fn with_properties(mut node: Node, properties: &BTreeMap<String, String>) -> Result<Node> {
    for (key, text) in properties {
        check_property(key).map_err(|e| e.at(&node.place))?;
        if node.has(key) {
            return Err(node.wrong(format!("'{key}' is no further property")));
        }
        node = node.text(key, text);
    }
    Ok(node)
}

/// Makes sure that a property can be called so in XML and in TOML.
fn check_property(key: &str) -> Result<()> {
    let is_possible = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let begins = key.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if begins && key.chars().all(is_possible) && !TABLES.contains(&key) {
        return Ok(());
    }
    Err(Error::new(ErrorKind::InvalidValue, format!("a property cannot be called '{}'", short(key))))
}

fn dimensions(node: &mut Node, key: &str) -> Result<Vec<String>> {
    let list = node.take_names(key)?;
    if list.iter().any(|d| !is_listed(d)) {
        return Err(node.wrong(format!("'{key}' is a list of names and lengths, with commas between them")));
    }
    Ok(list)
}

fn with_names(node: Node, key: &str, list: &[String]) -> Result<Node> {
    match list.iter().find(|d| !is_listed(d)) {
        Some(name) => {
            let message = format!("a dimension cannot be called '{name}' in a list");
            Err(Error::new(ErrorKind::InvalidValue, message).at(&node.place))
        }
        None if list.is_empty() => Ok(node),
        None => Ok(node.with(key, Field::Names(list.to_vec()))),
    }
}

/// Whether a name can stand between commas.
fn is_listed(name: &str) -> bool {
    !name.is_empty() && name.trim() == name && !name.contains(',')
}

impl Reduction {
    /// Reads the one element `rd` of an XML text.
    ///
    /// # Errors
    /// As [`Config::from_xml`].
    ///
    /// ```
    /// use sieva_reduce::Reduction;
    ///
    /// // DR4 by the words of Table I: dimension 1 is the first, and the last position counts.
    /// let range = Reduction::from_xml(r#"<rd type="4" name="v" dimensions="1" start_pos="100" end_pos="1000"/>"#)?;
    /// assert_eq!(range, Reduction::range("v", 0, 100, 1001));
    /// # Ok::<(), sieva_types::Error>(())
    /// ```
    pub fn from_xml(text: &str) -> Result<Self> {
        let (name, node) = xml::read(text)?;
        if name != "rd" {
            return Err(node.wrong("a reduction is an 'rd'"));
        }
        read::reduction(node)
    }

    /// The reduction as an element `rd`.
    ///
    /// # Errors
    /// As [`Config::to_xml`].
    pub fn to_xml(&self) -> Result<String> {
        self.check()?;
        xml::write("rd", &write::reduction(self), 0)
    }

    /// Reads a TOML text that is one reduction.
    ///
    /// # Errors
    /// As [`Config::from_toml`].
    pub fn from_toml(text: &str) -> Result<Self> {
        read::reduction(toml::read(text)?)
    }

    /// The reduction as TOML.
    ///
    /// # Errors
    /// Those of [`Reduction::check`].
    pub fn to_toml(&self) -> Result<String> {
        self.check()?;
        Ok(toml::write(&write::reduction(self)))
    }
}
