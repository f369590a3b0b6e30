//! SriovNetworkNodeState: the PFs of a node, as its config daemon reports them. They say which PF a policy means.

use super::name_of;
use super::raw::RawFields;

/// The name of the kind.
pub const NODE_STATE_KIND: &str = "SriovNetworkNodeState";

/// The PFs of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeInterfaces {
    /// The namespace of the state, which is the operator's.
    pub namespace: Box<str>,
    /// The name of the state, which is the node's.
    pub node: Box<str>,
    /// Its PFs.
    pub pfs: Vec<PhysicalFunction>,
}

/// What identifies a PF.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PhysicalFunction {
    /// Its name.
    pub name: Box<str>,
    /// Its other names.
    pub alternative_names: Vec<Box<str>>,
    /// Its PCI address.
    pub pci_address: Box<str>,
    /// The vendor.
    pub vendor: Box<str>,
    /// The model.
    pub device_id: Box<str>,
}

impl NodeInterfaces {
    /// Reads the status of a node state; `None` if it has none yet.
    pub fn read(json: &str) -> Option<Self> {
        let object = RawFields::parse(json).ok()?;
        let meta = RawFields::parse(object.raw("metadata")?).ok()?;
        let status = RawFields::parse(object.raw("status")?).ok()?;
        let interfaces = status.objects("interfaces").value()?;
        let text = |key| -> Box<str> { name_of(&meta.text(key).value().unwrap_or_default()).into() };
        let pfs = interfaces.iter().map(PhysicalFunction::read).collect();
        Some(Self { namespace: text("namespace"), node: text("name"), pfs })
    }
}

impl PhysicalFunction {
    fn read(fields: &RawFields<'_>) -> Self {
        let text = |key| -> Box<str> { name_of(&fields.text(key).value().unwrap_or_default()).into() };
        let names: Option<Vec<String>> = fields.raw("altNames").and_then(|raw| serde_json::from_str(raw).ok());
        Self {
            name: text("name"),
            alternative_names: names.unwrap_or_default().iter().map(|name| name_of(name).into()).collect(),
            pci_address: text("pciAddress"),
            vendor: text("vendor"),
            device_id: text("deviceID"),
        }
    }

    /// Whether it has that name.
    pub fn is_named(&self, name: &str) -> bool {
        *self.name == *name || self.alternative_names.iter().any(|other| **other == *name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_pfs_of_a_node() {
        let json = r#"{"metadata":{"name":"w1","namespace":"op"},"status":{"interfaces":[
            {"name":"ens1","altNames":["enp59s0"],"pciAddress":"0000:3b:00.0","vendor":"15b3","deviceID":"101d","Vfs":[{"vfID":0}]},
            {"name":5,"altNames":"x"}]}}"#;
        let state = NodeInterfaces::read(json).unwrap();
        assert_eq!((&*state.namespace, &*state.node, state.pfs.len()), ("op", "w1", 2));
        assert!(state.pfs[0].is_named("ens1") && state.pfs[0].is_named("enp59s0") && !state.pfs[0].is_named("ens2"));
        assert_eq!(state.pfs[1], PhysicalFunction::default());
        for none in ["5", "{}", r#"{"metadata":{},"status":{}}"#] {
            assert_eq!(NodeInterfaces::read(none), None, "{none}");
        }
    }
}
