//! The namespace and name by which an object is known.

use std::fmt;

/// Namespace and name of an object; the namespace is empty for cluster-scoped objects.
///
/// One text, `namespace/name`, because caches hold many of them. No name has a slash, so the last one separates the two, whatever a
/// network has as its target namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey(Box<str>);

impl ObjectKey {
    /// The key of the object with that name in that namespace.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self([namespace, "/", name].concat().into())
    }

    /// Its namespace.
    pub fn namespace(&self) -> &str {
        self.0.rsplit_once('/').map_or("", |(namespace, _)| namespace)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.0.rsplit_once('/').map_or(&self.0, |(_, name)| name)
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_its_namespace_and_name() {
        for (namespace, name, text) in
            [("apps", "net", "apps/net"), ("", "node", "/node"), ("", "", "/"), ("a/b", "net", "a/b/net")]
        {
            let key = ObjectKey::new(namespace, name);
            assert_eq!((key.namespace(), key.name(), key.to_string().as_str()), (namespace, name, text));
        }
        assert_ne!(ObjectKey::new("a", "b"), ObjectKey::new("", "ab"));
    }
}
