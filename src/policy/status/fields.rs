//! FieldsV1: sets of fields as a tree. All managers' sets, old and new, are put into one tree, so that each level of the status
//! is compared once, however many managers there are.
//!
//! A member of the tree is a field (`f:name`), an item of a list that is a map (`k:{"type":"Ready"}`), a value of a list that is
//! a set (`v:"x"`) or a place in a list (`i:0`); `.` is the thing itself, apart from what is in it.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::json::{Error, JsonReader, Problem, escape};
use crate::resources::raw::RawFields;

/// The deepest nesting that is read; each level costs a stack frame.
const MAX_DEPTH: usize = 64;

/// Which object's managedFields a field comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// The stored object.
    Old,
    /// The object in the request.
    New,
}

/// The numbers of the entries that own something.
#[derive(Clone, Debug, Default)]
pub(super) struct Owners {
    pub(super) old: Vec<u32>,
    pub(super) new: Vec<u32>,
}

impl Owners {
    fn add(&mut self, entry: u32, side: Side) {
        match side {
            Side::Old => self.old.push(entry),
            Side::New => self.new.push(entry),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.old.is_empty() && self.new.is_empty()
    }
}

/// A place in the tree.
#[derive(Debug, Default)]
pub(super) struct FieldNode<'a> {
    parent: u32,
    key: Cow<'a, str>,
    pub(super) children: Vec<u32>,
    /// Owners of the field with everything in it.
    pub(super) whole: Owners,
    /// Owners of the existence of the field.
    pub(super) itself: Owners,
}

/// A step from a node to a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FieldStep<'k> {
    /// To a member of an object.
    Field(&'k str),
    /// To the item of a list whose members have these values, given as JSON.
    Item(&'k str),
    /// To a value in a list, given as JSON.
    Value(&'k str),
    /// To a place in a list.
    Index(usize),
    /// Unknown.
    Unknown,
}

impl FieldNode<'_> {
    /// The step that leads here.
    pub(super) fn step(&self) -> FieldStep<'_> {
        match self.key.split_once(':') {
            Some(("f", name)) => FieldStep::Field(name),
            Some(("k", keys)) => FieldStep::Item(keys),
            Some(("v", value)) => FieldStep::Value(value),
            Some(("i", index)) => index.parse().map_or(FieldStep::Unknown, FieldStep::Index),
            _ => FieldStep::Unknown,
        }
    }
}

/// The fields of a status, and who owns them.
#[derive(Debug)]
pub(super) struct Owned<'a> {
    /// The first one is the status itself.
    nodes: Vec<FieldNode<'a>>,
    index: HashMap<(u32, Cow<'a, str>), u32>,
}

impl Default for Owned<'_> {
    fn default() -> Self {
        Self { nodes: vec![FieldNode { key: "f:status".into(), ..FieldNode::default() }], index: HashMap::new() }
    }
}

impl<'a> Owned<'a> {
    /// The status itself.
    pub(super) const STATUS: u32 = 0;

    /// Adds the fields of an entry, as far as they are in the status.
    pub(super) fn add(&mut self, fields: &'a str, entry: u32, side: Side) -> Result<(), Error> {
        if !fields.starts_with('{') {
            return Ok(());
        }
        JsonReader::whole(fields, |reader| {
            reader.members(|reader, key, _| match key.as_ref() {
                "f:status" => self.read(reader, Self::STATUS, MAX_DEPTH, (entry, side)),
                _ => reader.skip().map(drop),
            })
        })
    }

    fn read(&mut self, reader: &mut JsonReader<'a>, at: u32, levels: usize, owner: (u32, Side)) -> Result<(), Error> {
        if reader.peek() != Some(b'{') {
            return reader.skip().map(drop);
        }
        if levels == 0 {
            return Err(Error { offset: reader.at(), problem: Problem::TooDeep });
        }
        let mut is_leaf = true;
        reader.members(|reader, key, _| {
            is_leaf = false;
            if key == "." {
                self.owners(at, |node| &mut node.itself, owner);
                return reader.skip().map(drop);
            }
            let child = self.child(at, key);
            self.read(reader, child, levels - 1, owner)
        })?;
        if is_leaf {
            self.owners(at, |node| &mut node.whole, owner);
        }
        Ok(())
    }

    fn owners(
        &mut self,
        at: u32,
        which: impl for<'n> Fn(&'n mut FieldNode<'a>) -> &'n mut Owners,
        (entry, side): (u32, Side),
    ) {
        if let Some(node) = self.nodes.get_mut(at as usize) {
            which(node).add(entry, side);
        }
    }

    fn child(&mut self, parent: u32, key: Cow<'a, str>) -> u32 {
        let next = self.nodes.len() as u32;
        let child = *self.index.entry((parent, key.clone())).or_insert(next);
        if child == next {
            self.nodes.push(FieldNode { parent, key, ..FieldNode::default() });
            if let Some(node) = self.nodes.get_mut(parent as usize) {
                node.children.push(child);
            }
        }
        child
    }

    /// A place of the tree.
    pub(super) fn node(&self, at: u32) -> Option<&FieldNode<'a>> {
        self.nodes.get(at as usize)
    }

    /// The ancestors of a node, starting at the status.
    fn ancestors(&self, at: u32) -> Vec<&FieldNode<'a>> {
        let mut way = Vec::new();
        let mut here = at;
        while let Some(node) = self.node(here) {
            way.push(node);
            if here == Self::STATUS {
                break;
            }
            here = node.parent;
        }
        way.reverse();
        way
    }

    /// A node as readable text: `status.conditions[type=Ready].reason`.
    pub(super) fn words(&self, at: u32) -> String {
        let mut words = String::new();
        for node in self.ancestors(at) {
            match node.step() {
                FieldStep::Field(name) if words.is_empty() => words.push_str(name),
                FieldStep::Field(name) => words.extend([".", name]),
                FieldStep::Item(keys) => words.extend(["[", &keys_in_words(keys), "]"]),
                FieldStep::Value(value) => words.extend(["[", value, "]"]),
                FieldStep::Index(index) => words += &format!("[{index}]"),
                FieldStep::Unknown => words.extend(["[", &node.key, "]"]),
            }
        }
        words
    }

    /// A node as a JSON pointer, which ends at a list: the item is known, but not its index.
    pub(super) fn pointer(&self, at: u32) -> String {
        let mut pointer = String::new();
        for node in self.ancestors(at) {
            let FieldStep::Field(name) = node.step() else { break };
            pointer.extend(["/", &escape(name)]);
        }
        pointer
    }
}

fn keys_in_words(keys: &str) -> String {
    let Ok(fields) = RawFields::parse(keys) else { return keys.to_owned() };
    let word = |key: &str| {
        let text = fields.text(key).value();
        format!("{key}={}", text.as_deref().or(fields.raw(key)).unwrap_or("null"))
    };
    fields.keys().map(word).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_paths_as_text_and_pointers() {
        let fields = r#"{"f:metadata":{"f:annotations":{"f:a":{}}},"f:status":{".":{},"f:a/b":{},"f:conditions":{
            "k:{\"type\":\"Ready\",\"port\":80}":{".":{},"f:reason":{}}},"f:names":{"v:\"x\"":{},"i:3":{},"q":{}}}}"#;
        let mut owned = Owned::default();
        owned.add(fields, 0, Side::Old).unwrap();
        let found: Vec<_> = (0..owned.nodes.len() as u32).map(|at| (owned.words(at), owned.pointer(at))).collect();
        let want = [
            ("status", "/status"),
            ("status.a/b", "/status/a~1b"),
            ("status.conditions", "/status/conditions"),
            ("status.conditions[type=Ready,port=80]", "/status/conditions"),
            ("status.conditions[type=Ready,port=80].reason", "/status/conditions"),
            ("status.names", "/status/names"),
            ("status.names[\"x\"]", "/status/names"),
            ("status.names[3]", "/status/names"),
            ("status.names[q]", "/status/names"),
        ];
        assert_eq!(found, want.map(|(words, pointer)| (words.to_owned(), pointer.to_owned())));
    }

    #[test]
    fn owners_of_fields_are_distinct() {
        let mut owned = Owned::default();
        owned.add(r#"{"f:status":{"f:a":{}}}"#, 0, Side::Old).unwrap();
        owned.add(r#"{"f:status":{".":{},"f:a":{}}}"#, 1, Side::New).unwrap();
        owned.add(r#"{"f:spec":{"f:a":{}}}"#, 2, Side::New).unwrap();
        let (status, a) = (owned.node(0).unwrap(), owned.node(1).unwrap());
        assert_eq!((&status.itself.old, &status.itself.new), (&vec![], &vec![1]));
        assert_eq!((&a.whole.old, &a.whole.new), (&vec![0], &vec![1]));
        assert_eq!(owned.nodes.len(), 2);
    }

    #[test]
    fn tolerates_malformed_fields_v1() {
        for fields in ["5", "null", "[]", r#"{"f:status":5}"#, r#"{"f:status":{"f:a":[]}}"#, "{}"] {
            assert!(Owned::default().add(fields, 0, Side::Old).is_ok(), "{fields}");
        }
        let deep =
            format!(r#"{{"f:status":{}{}}}"#, r#"{"f:a":"#.repeat(100_000), "{}".to_owned() + &"}".repeat(100_000));
        assert_eq!(Owned::default().add(&deep, 0, Side::Old).unwrap_err().problem, Problem::TooDeep);
    }
}
