//! Configs that are nearly right: the keys of a reader, repeated in several spellings, with values that mostly fit.

use nadmit::cni::schema::{Field, Reading, Type};

use crate::readers::GoReader;

/// Which values of a config are wrong on purpose.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Faults {
    None,
    /// One in so many.
    OneIn(usize),
    /// Only the one after so many.
    After(usize),
}

/// Generates the same configs from the same seed.
pub struct Generator {
    state: u64,
    /// Of the current config.
    faults: Faults,
}

const STRINGS: &[&str] = &[
    "",
    "a",
    "on",
    "off",
    "true",
    "0000:01:00.1",
    "10.0.0.0/24",
    "/var/log/x",
    "\\u0041\\u00e9",
    "\\\"\\\\\\/\\b\\f\\n\\r\\t",
    "\\ud83d\\ude00",
    "\\ud800",
    "\\udc00x",
    "é日本",
    "<&>\u{2028}",
];
const INTEGERS: &[&str] = &[
    "0",
    "1",
    "5",
    "100",
    "4094",
    "100.0",
    "1e2",
    "1E+2",
    "0.5e1",
    "4294967295",
    "9007199254740993",
    "1e15",
    "123456789e-0",
    "1.50e2",
];
const NUMBERS: &[&str] = &[
    "-0",
    "-0.0",
    "-1",
    "1.5",
    "-1e-400",
    "1e-7",
    "4294967296",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "1e20",
    "1e21",
    "1e300",
    "123456789012345678901234567890",
];
const UNKNOWN: &[&str] = &["", "x", "vlann", "\\u0000", "ıpam", "Ａ", "typé"];

impl Generator {
    pub fn new(seed: u64) -> Self {
        Self { state: seed, faults: Faults::None }
    }

    /// A number below the limit.
    pub fn below(&mut self, limit: usize) -> usize {
        // The mixing function of SplitMix64.
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % limit as u64) as usize
    }

    pub fn one_in(&mut self, many: usize) -> bool {
        self.below(many) == 0
    }

    pub fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }

    /// A config for that reader.
    pub fn config(&mut self, reader: &GoReader) -> String {
        let most = 2 + self.below(12);
        self.set_faults(most);
        let Type::Object(fields) = &reader.holds else { panic!("a reader holds a struct") };
        // A number outside the range of floats is rejected in a copy, and where it is decoded.
        if self.faults != Faults::None && reader.reading == Reading::Copy && self.one_in(50) {
            return r#"{"x":1e400}"#.to_owned();
        }
        self.members(fields, 0)
    }

    /// Begins a config: half of them have no fault, a quarter has at most one, which no other fault hides, and in the others one value in
    /// so many is one.
    pub fn set_faults(&mut self, many: usize) {
        self.faults = match self.below(4) {
            0 => Faults::OneIn(many),
            1 => Faults::After(self.below(12)),
            _ => Faults::None,
        };
    }

    pub fn is_fault(&mut self) -> bool {
        match self.faults {
            Faults::None => false,
            Faults::OneIn(many) => self.one_in(many),
            Faults::After(0) => {
                self.faults = Faults::None;
                true
            }
            Faults::After(values) => {
                self.faults = Faults::After(values - 1);
                false
            }
        }
    }

    fn space(&mut self) -> &'static str {
        self.pick(&["", "", "", "", " ", "\n\t"])
    }

    /// An object with some fields of a struct. A few fields are repeated often, so that their values are merged.
    fn members(&mut self, fields: &[Field], depth: usize) -> String {
        let number = 1 + self.below(3);
        let few: Vec<&Field> = (0..number).map(|_| &fields[self.below(fields.len())]).collect();
        let mut members = Vec::new();
        for _ in 0..self.below(8) {
            let field = if self.one_in(4) { &fields[self.below(fields.len())] } else { few[self.below(few.len())] };
            let (key, value) = if self.one_in(12) {
                (self.pick(UNKNOWN).to_owned(), self.anything(depth))
            } else {
                (self.spelling(field.key), self.value(&field.holds, depth))
            };
            members.push((key, value));
        }
        self.object(&members)
    }

    fn object(&mut self, members: &[(String, String)]) -> String {
        let mut text = "{".to_owned();
        for (index, (key, value)) in members.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            text.push_str(&[comma, self.space(), "\"", key, "\"", self.space(), ":", self.space(), value].concat());
        }
        text + self.space() + "}"
    }

    /// A key in one of its possible spellings.
    pub fn spelling(&mut self, key: &str) -> String {
        let way = self.below(10);
        let spelled = key.chars().enumerate().map(|(index, letter)| match way {
            0..4 => letter,
            4 => letter.to_ascii_uppercase(),
            5 => letter.to_ascii_lowercase(),
            6 if index == 0 => letter.to_ascii_uppercase(),
            7 if matches!(letter, 's' | 'S') => '\u{17f}',
            7 if matches!(letter, 'k' | 'K') => '\u{212a}',
            8 if self.one_in(2) => {
                if letter.is_ascii_uppercase() {
                    letter.to_ascii_lowercase()
                } else {
                    letter.to_ascii_uppercase()
                }
            }
            _ => letter,
        });
        let spelled: String = spelled.collect();
        match (way, spelled.chars().next()) {
            // The first letter as an escape.
            (9, Some(first)) => format!("\\u{:04x}{}", first as u32, &spelled[first.len_utf8()..]),
            _ => spelled,
        }
    }

    fn value(&mut self, holds: &Type, depth: usize) -> String {
        if self.one_in(6) {
            return "null".to_owned();
        }
        if self.is_fault() {
            return self.anything(depth);
        }
        match holds {
            Type::Any => self.anything(depth),
            Type::Str | Type::Text | Type::Network => self.string(),
            Type::Bool => self.pick(&["true", "false"]).to_owned(),
            Type::Int(..) if self.is_fault() => self.pick(NUMBERS).to_owned(),
            Type::Int(..) => self.pick(INTEGERS).to_owned(),
            Type::Pointer(inner) | Type::Fresh(inner) => self.value(inner, depth),
            Type::Object(fields) => self.members(fields, depth + 1),
            Type::List(of) => {
                let length = self.below(4);
                let elements: Vec<String> = (0..length).map(|_| self.value(of, depth + 1)).collect();
                format!("[{}]", elements.join(","))
            }
            Type::Map(of) => {
                let length = self.below(4);
                let entries = (0..length)
                    .map(|_| (self.pick(&["mac", "MAC", "ips", "a", ""]).to_owned(), self.value(of, depth + 1)));
                let entries: Vec<_> = entries.collect();
                self.object(&entries)
            }
        }
    }

    fn string(&mut self) -> String {
        format!("\"{}\"", self.pick(STRINGS))
    }

    /// Any JSON value.
    fn anything(&mut self, depth: usize) -> String {
        match self.below(if depth > 4 { 5 } else { 7 }) {
            0 => "null".to_owned(),
            1 => self.pick(&["true", "false"]).to_owned(),
            2 => self.string(),
            3 => self.pick(INTEGERS).to_owned(),
            4 => self.pick(NUMBERS).to_owned(),
            5 => {
                let length = self.below(3);
                let elements: Vec<String> = (0..length).map(|_| self.anything(depth + 1)).collect();
                format!("[{}]", elements.join(","))
            }
            _ => {
                let length = self.below(3);
                let members =
                    (0..length).map(|_| (self.pick(&["type", "Type", "a"]).to_owned(), self.anything(depth + 1)));
                let members: Vec<_> = members.collect();
                self.object(&members)
            }
        }
    }
}
