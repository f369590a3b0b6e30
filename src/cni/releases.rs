//! The releases of the programs that read a config, as far as the policy names them, and which release is the first with a feature.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A program with releases of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "&str")]
pub enum Program {
    /// bridge, macvlan, ipvlan, vlan, host-device, host-local, static, dhcp, tuning, vrf, sbr, bandwidth, firewall and portmap.
    CniPlugins,
    /// The plugin `sriov`.
    SriovCni,
    /// The plugin `ib-sriov`.
    IbSriovCni,
    /// The plugin `ovs`.
    OvsCni,
    /// The plugin `rdma`.
    RdmaCni,
    /// The plugin `bond`.
    BondCni,
    /// The plugin `ovn-k8s-cni-overlay`, and the controllers that read the NADs.
    OvnKubernetes,
    /// The IPAM plugin `whereabouts`.
    Whereabouts,
    /// Multus, thin or thick.
    Multus,
}

/// The three numbers of a release.
pub type ReleaseNumbers = [u16; 3];

/// A release that does not exist yet.
pub const UNRELEASED: ReleaseNumbers = [u16::MAX; 3];

/// Since when a program does something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Since {
    /// The program.
    pub program: Program,
    /// Its first release that does.
    pub release: ReleaseNumbers,
}

/// A program, the oldest release that is assumed where the policy names none, and the first releases that support version 1.0.0 and
/// version 1.1.0 of the CNI specification.
type Row = (Program, &'static str, ReleaseNumbers, ReleaseNumbers, ReleaseNumbers);

const PROGRAMS: [Row; 9] = [
    (Program::CniPlugins, "cni-plugins", [1, 4, 0], [1, 0, 0], [1, 6, 0]),
    (Program::SriovCni, "sriov-cni", [2, 8, 0], [2, 7, 0], [2, 8, 0]),
    (Program::IbSriovCni, "ib-sriov-cni", [1, 1, 0], [1, 1, 0], [1, 3, 0]),
    (Program::OvsCni, "ovs-cni", [0, 31, 0], [0, 34, 0], [0, 35, 0]),
    (Program::RdmaCni, "rdma-cni", [1, 1, 0], [1, 2, 0], [1, 3, 0]),
    // Its only release is from 2018; what is installed is built from its sources.
    (Program::BondCni, "bond-cni", [1, 0, 0], UNRELEASED, UNRELEASED),
    (Program::OvnKubernetes, "ovn-kubernetes", [1, 1, 0], [1, 0, 0], [1, 1, 0]),
    (Program::Whereabouts, "whereabouts", [0, 6, 0], [0, 7, 0], [0, 7, 0]),
    (Program::Multus, "multus", [4, 0, 0], [4, 0, 0], [4, 1, 0]),
];

impl Program {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        PROGRAMS.iter().map(|(program, ..)| *program)
    }

    /// The program that a plugin or IPAM plugin is part of; `None` for plugins we know nothing of.
    pub fn of(kind: &str) -> Option<Self> {
        Some(match kind {
            "bridge" | "macvlan" | "ipvlan" | "vlan" | "host-device" | "host-local" | "static" | "dhcp" | "tuning"
            | "vrf" | "sbr" | "bandwidth" | "firewall" | "portmap" => Self::CniPlugins,
            "sriov" => Self::SriovCni,
            "ib-sriov" => Self::IbSriovCni,
            "ovs" => Self::OvsCni,
            "rdma" => Self::RdmaCni,
            "bond" => Self::BondCni,
            "ovn-k8s-cni-overlay" => Self::OvnKubernetes,
            "whereabouts" => Self::Whereabouts,
            "multus" | "multus-shim" => Self::Multus,
            _ => return None,
        })
    }

    fn row(self) -> &'static Row {
        let [first, ..] = &PROGRAMS;
        PROGRAMS.iter().find(|(program, ..)| *program == self).unwrap_or(first)
    }

    /// The name in policy files, and of its repository.
    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// The oldest release that is assumed where the policy names none.
    pub fn oldest_assumed(self) -> Release {
        Release::of(self.row().2)
    }

    /// Since when it supports a version of the CNI specification; `None` for versions that every release supports.
    pub fn supports_cni(self, version: &str) -> Option<Since> {
        let (.., first, second) = self.row();
        match version {
            "1.0.0" => Some(Since { program: self, release: *first }),
            "1.1.0" => Some(Since { program: self, release: *second }),
            _ => None,
        }
    }
}

impl From<Program> for &'static str {
    fn from(program: Program) -> Self {
        program.name()
    }
}

impl TryFrom<String> for Program {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        let names = || Self::all().map(Self::name).collect::<Vec<_>>().join(", ");
        Self::all().find(|program| program.name() == name).ok_or_else(|| format!("expected one of {}", names()))
    }
}

impl Since {
    /// The first release; `None` if there is none yet.
    pub fn first(self) -> Option<Release> {
        (self.release != UNRELEASED).then(|| Release::of(self.release))
    }
}

/// "from release 1.7 of cni-plugins on".
impl fmt::Display for Since {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.first() {
            Some(release) => write!(f, "from release {release} of {} on", self.program.name()),
            None => write!(f, "in no release of {} yet", self.program.name()),
        }
    }
}

/// A release of a program, as people write it: "2.10" or "v1.6.2".
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Release {
    major: u16,
    minor: u16,
    /// `None` where it is any of them.
    patch: Option<u16>,
}

impl Release {
    fn of([major, minor, patch]: ReleaseNumbers) -> Self {
        Self { major, minor, patch: (patch > 0).then_some(patch) }
    }

    /// Reads a release; what follows the numbers after a `-` or `+` is ignored.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let numbers = text.split(['-', '+']).next().unwrap_or_default();
        let mut parts = numbers.split('.').map(|part| part.parse().ok());
        let (major, minor) = (parts.next()??, parts.next()??);
        let patch = match parts.next() {
            Some(patch) => Some(patch?),
            None => None,
        };
        parts.next().is_none().then_some(Self { major, minor, patch })
    }

    /// Whether it is that release or a later one; `None` if only the missing patch number could tell.
    fn reaches(self, [major, minor, patch]: ReleaseNumbers) -> Option<bool> {
        match (self.major, self.minor).cmp(&(major, minor)) {
            std::cmp::Ordering::Equal if patch == 0 => Some(true),
            std::cmp::Ordering::Equal => self.patch.map(|own| own >= patch),
            order => Some(order.is_gt()),
        }
    }

    /// The same for any patch number.
    pub fn without_patch(self) -> Self {
        Self { patch: None, ..self }
    }

    /// Whether it can be the same release as another one.
    pub fn agrees(self, other: Self) -> bool {
        let patch = self.patch.zip(other.patch).is_none_or(|(own, other)| own == other);
        (self.major, self.minor) == (other.major, other.minor) && patch
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)?;
        self.patch.map_or(Ok(()), |patch| write!(f, ".{patch}"))
    }
}

impl Serialize for Release {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Release {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match serde_json::Value::deserialize(deserializer)? {
            serde_json::Value::String(text) => Self::parse(&text)
                .ok_or_else(|| de::Error::custom(format!("{text:?} is not a release; write it as in \"2.10\""))),
            // YAML reads 2.10 as 2.1.
            other => Err(de::Error::custom(format!("a release is written in quotes, as in \"2.10\"; found {other}"))),
        }
    }
}

impl JsonSchema for Release {
    fn schema_name() -> Cow<'static, str> {
        "Release".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "A release of a program, in quotes: \"2.10\" or \"1.6.2\".",
            "pattern": r"^v?[0-9]+\.[0-9]+(\.[0-9]+)?([-+].*)?$",
        })
    }
}

/// The oldest release in use of each program that the policy names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Versions(BTreeMap<Program, Release>);

impl JsonSchema for Versions {
    fn schema_name() -> Cow<'static, str> {
        "Versions".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let release = generator.subschema_for::<Release>();
        let properties: BTreeMap<_, _> = Program::all().map(|program| (program.name(), release.clone())).collect();
        json_schema!({ "type": "object", "properties": properties, "additionalProperties": false })
    }
}

/// No program is named.
pub static NO_VERSIONS: Versions = Versions(BTreeMap::new());

impl Versions {
    /// The release in use, if it is named.
    pub fn get(&self, program: Program) -> Option<Release> {
        self.0.get(&program).copied()
    }

    /// Whether no program is named.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the release in use does that; `None` if it is not known.
    pub fn reach(&self, since: Since) -> Option<bool> {
        match self.get(since.program) {
            // The release that is named may be a later one than is known here.
            _ if since.release == UNRELEASED => None,
            Some(release) => release.reaches(since.release),
            // Releases before the oldest assumed one are not considered.
            None => since.program.oldest_assumed().reaches(since.release).filter(|reached| *reached),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_read_as_people_write_them() {
        for (text, want) in [
            ("2.10", Some("2.10")),
            ("v2.10.0", Some("2.10.0")),
            ("1.6.2-rc1", Some("1.6.2")),
            ("4.2.3+build.7", Some("4.2.3")),
            ("2", None),
            ("2.", None),
            ("2.10.0.1", None),
            ("2.x", None),
            ("latest", None),
            ("", None),
            ("70000.1", None),
        ] {
            assert_eq!(Release::parse(text).map(|release| release.to_string()).as_deref(), want, "{text}");
        }
    }

    #[test]
    fn a_release_is_compared_by_its_numbers() {
        let of = |text: &str| Release::parse(text).unwrap();
        for (release, since, want) in [
            ("1.10", [1, 9, 0], Some(true)),
            ("1.9", [1, 10, 0], Some(false)),
            ("1.4", [1, 4, 0], Some(true)),
            ("1.4", [1, 4, 1], None),
            ("1.4.0", [1, 4, 1], Some(false)),
            ("1.4.1", [1, 4, 1], Some(true)),
            ("2.0", [1, 4, 1], Some(true)),
            ("0.9", [1, 0, 0], Some(false)),
        ] {
            assert_eq!(of(release).reaches(since), want, "{release} {since:?}");
        }
        assert!(of("1.6").agrees(of("v1.6.2")) && of("1.6.2").agrees(of("1.6.2")));
        assert!(!of("1.6.1").agrees(of("1.6.2")) && !of("1.6").agrees(of("1.7")));
    }

    #[test]
    fn without_a_name_only_old_features_are_certain() {
        let since = |minor| Since { program: Program::CniPlugins, release: [1, minor, 0] };
        assert_eq!(NO_VERSIONS.reach(since(4)), Some(true));
        assert_eq!(NO_VERSIONS.reach(since(5)), None);
        let named: Versions = serde_json::from_str(r#"{"cni-plugins":"1.3"}"#).unwrap();
        assert_eq!([3, 4].map(|minor| named.reach(since(minor))), [Some(true), Some(false)]);
        assert_eq!(serde_json::to_string(&named).unwrap(), r#"{"cni-plugins":"1.3"}"#);
    }

    #[test]
    fn every_program_has_its_row_and_its_name() {
        for program in Program::all() {
            assert_eq!(program.row().0, program);
            assert_eq!(serde_json::to_value(program).unwrap(), program.name());
        }
        for (kind, _) in super::super::readers::KNOWN {
            assert!(Program::of(kind).is_some(), "{kind}");
        }
        for (kind, ..) in super::super::readers::IPAM {
            assert!(Program::of(kind).is_some(), "{kind}");
        }
    }

    #[test]
    fn first_releases_are_named_with_their_program() {
        for (release, text) in [
            ([1, 7, 0], "from release 1.7 of cni-plugins on"),
            ([1, 7, 1], "from release 1.7.1 of cni-plugins on"),
            (UNRELEASED, "in no release of cni-plugins yet"),
        ] {
            assert_eq!(Since { program: Program::CniPlugins, release }.to_string(), text);
        }
        let unreleased = Since { program: Program::CniPlugins, release: UNRELEASED };
        assert_eq!(NO_VERSIONS.reach(unreleased), None);
        assert_eq!(Release::parse("1.6.2").unwrap().without_patch(), Release::parse("1.6").unwrap());
        assert!(NO_VERSIONS.is_empty());
        assert!(!serde_json::from_str::<Versions>(r#"{"multus":"4.1"}"#).unwrap().is_empty());
    }

    #[test]
    fn wrong_releases_and_programs_are_rejected_with_an_example() {
        for (json, error) in [
            (r#"{"cni-plugins":"x"}"#, "\"x\" is not a release; write it as in \"2.10\""),
            (r#"{"cni-plugins":2.1}"#, "a release is written in quotes, as in \"2.10\"; found 2.1"),
            (r#"{"other":"2.1"}"#, "expected one of "),
        ] {
            let found = serde_json::from_str::<Versions>(json).unwrap_err().to_string();
            assert!(found.starts_with(error), "{found}");
        }
    }

    #[test]
    fn schema_names_are_those_of_the_policy() {
        assert_eq!((Release::schema_name().as_ref(), Versions::schema_name().as_ref()), ("Release", "Versions"));
    }
}
