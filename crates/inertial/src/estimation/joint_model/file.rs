//! Joint-model files: couplings, springs, counterbalances.

use std::cell::RefCell;
use std::collections::BTreeMap;

use serde::Deserialize;

use crate::estimation::joint_model::expression::{Expression, Meaning, Variable};
use crate::estimation::joint_model::terms::{Coupling, GivenTerm, JointModel, JointTerms};
use crate::mechanism::Mechanism;
use crate::{Error, Place, Result};

/// Maximum number of terms: the time to find dependent terms grows with its cube.
const MOST_TERMS: usize = 300;

/// Maximum number of different columns of the log in all formulas.
const MOST_COLUMNS: usize = 1000;

/// Maximum number of nested definitions, each with up to a hundred levels of brackets. It prevents a stack overflow of the
/// parser.
const DEEPEST: usize = 20;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    coupling: Vec<CouplingEntry>,
    #[serde(default)]
    define: BTreeMap<String, String>,
    #[serde(default)]
    term: Vec<TermEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CouplingEntry {
    motor: String,
    turns_with: BTreeMap<String, f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TermEntry {
    joint: String,
    name: String,
    formula: String,
    #[serde(default)]
    nonnegative: bool,
}

impl JointModel {
    /// Parses a joint model in TOML and adds it to the usual `terms`.
    ///
    /// ```
    /// use inertial::estimation::{JointModel, JointTerms};
    /// use inertial::mechanism::{BuildOptions, builtin};
    /// let arm = builtin::get("planar-2r")?.build(&BuildOptions::default())?;
    /// let names = arm.velocity_names();
    /// let text = format!(r#"
    ///     [define]
    ///     angle = "q.{0} - pi/2"
    ///     [[term]]             # a spring at the first joint
    ///     joint = "{0}"
    ///     name = "spring"
    ///     formula = "sin(angle)"
    ///     nonnegative = true
    ///     [[coupling]]         # the second motor turns with both joints
    ///     motor = "{1}"
    ///     turns_with = {{ {0} = 1, {1} = 1 }}"#, names[0], names[1]);
    /// let model = JointModel::parse(&arm, JointTerms::default(), &text)?;
    /// assert_eq!((model.given.len(), model.couplings[0].shaft.len()), (1, 2));
    /// # Ok::<(), inertial::Error>(())
    /// ```
    pub fn parse(mechanism: &Mechanism, terms: JointTerms, text: &str) -> Result<Self> {
        let file: File = toml::from_str(text).map_err(|e| {
            let line = e.span().map_or(1, |s| 1 + text[..s.start.min(text.len())].matches('\n').count());
            Error::syntax(
                Place::line(u32::try_from(line).unwrap_or(u32::MAX), ""),
                e.message().replace('\n', " "),
            )
        })?;
        if file.term.len() > MOST_TERMS {
            let found = file.term.len();
            return Err(Error::InvalidOption(format!("{found} terms, expected at most {MOST_TERMS}")));
        }
        let names = Names {
            positions: mechanism.position_names(),
            velocities: mechanism.velocity_names(),
            define: &file.define,
            open: RefCell::new(Vec::new()),
            failed: RefCell::new(None),
            columns: RefCell::new(Vec::new()),
        };
        let coordinate = |name: &str, place: &str| {
            names.velocities.iter().position(|v| v == name).ok_or_else(|| {
                let known = names.velocities.join(", ");
                Error::UnknownName(format!("{place}: the model has no joint {name}, expected one of {known}"))
            })
        };
        let mut out = Self::from(terms);
        for entry in &file.coupling {
            let place = format!("coupling of {}", entry.motor);
            let motor = coordinate(&entry.motor, &place)?;
            let turns = entry.turns_with.iter();
            let shaft = turns.map(|(name, &factor)| Ok((coordinate(name, &place)?, factor)));
            out.couplings.push(Coupling { motor, shaft: shaft.collect::<Result<_>>()? });
        }
        for entry in file.term {
            let place = format!("term {}", entry.name);
            let within = |e: Error| Error::InvalidOption(format!("{place}: {e}"));
            let given = GivenTerm {
                coordinate: coordinate(&entry.joint, &place)?,
                expression: names.formula(&entry.formula).map_err(within)?,
                name: entry.name,
                nonnegative: entry.nonnegative,
            };
            if out.given.iter().any(|g| g.name == given.name && g.coordinate == given.coordinate) {
                return Err(Error::InvalidOption(format!("{place}: given twice for {}", entry.joint)));
            }
            out.given.push(given);
        }
        out.columns = names.columns.into_inner();
        Ok(out)
    }
}

/// Meanings of names in expressions.
struct Names<'f> {
    positions: Vec<String>,
    velocities: Vec<String>,
    define: &'f BTreeMap<String, String>,
    /// Definitions that are being expanded, to detect recursion.
    open: RefCell<Vec<String>>,
    /// Error inside a definition.
    failed: RefCell<Option<Error>>,
    /// Additional columns of the log that were named.
    columns: RefCell<Vec<String>>,
}

impl Names<'_> {
    fn formula(&self, text: &str) -> Result<Expression> {
        let parsed = Expression::parse(text, |name| self.meaning(name));
        match self.failed.take() {
            Some(error) => Err(error),
            None => parsed,
        }
    }

    fn meaning(&self, name: &str) -> Option<Meaning> {
        if let Some(text) = self.define.get(name) {
            if self.open.borrow().iter().any(|n| n == name) {
                self.fail(Error::InvalidOption(format!("{name} is defined by itself")));
                return None;
            }
            if self.open.borrow().len() >= DEEPEST {
                let message = format!("{name}: more than {DEEPEST} nested definitions");
                self.fail(Error::InvalidOption(message));
                return None;
            }
            self.open.borrow_mut().push(name.to_owned());
            let formula = Expression::parse(text, |inner| self.meaning(inner));
            self.open.borrow_mut().pop();
            return match formula {
                Ok(formula) => Some(Meaning::Formula(formula)),
                Err(error) => {
                    self.fail(error);
                    None
                }
            };
        }
        if let Some(column) = name.strip_prefix("log.").filter(|c| !c.is_empty()) {
            let mut columns = self.columns.borrow_mut();
            let known = columns.iter().position(|c| c == column);
            if known.is_none() && columns.len() >= MOST_COLUMNS {
                let message = format!("log.{column}: expected at most {MOST_COLUMNS} columns of the log");
                self.fail(Error::InvalidOption(message));
                return None;
            }
            let index = known.unwrap_or_else(|| {
                columns.push(column.to_owned());
                columns.len() - 1
            });
            return Some(Meaning::Variable(Variable::Column(index)));
        }
        let find = |prefix: &str, names: &[String]| {
            let rest = name.strip_prefix(prefix)?;
            match rest.strip_prefix('.') {
                Some(joint) => names.iter().position(|n| n == joint),
                None => rest.parse::<usize>().ok().filter(|k| (1..=names.len()).contains(k)).map(|k| k - 1),
            }
        };
        let variable = find("ddq", &self.velocities)
            .map(Variable::A)
            .or_else(|| find("dq", &self.velocities).map(Variable::V))
            .or_else(|| find("q", &self.positions).map(Variable::Q))?;
        Some(Meaning::Variable(variable))
    }

    /// Stores the error unless there is one already: the first, innermost error is kept.
    fn fail(&self, error: Error) {
        self.failed.borrow_mut().get_or_insert(error);
    }
}
