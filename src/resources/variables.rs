//! Variables in manifests, which are replaced before anything is applied: `${NAME}` (Flux, OpenShift Templates, envsubst) and `$(NAME)`
//! (Kustomize).

/// Whether a text of a manifest has a variable, so that what will be applied is not known. In a cluster nothing replaces them.
pub fn has_variable(text: &str) -> bool {
    [("${", '}'), ("$(", ')')].into_iter().any(|(open, close)| {
        let behind = text.split_once(open).map(|(_, behind)| behind);
        behind.is_some_and(|behind| behind.contains(close))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_have_both_brackets() {
        for text in ["${NET}", "a,$(NET)@x", r#"[{"name":"${{NET}}"}]"#, "$(", "${", "}${", "$NET", "{}", ")$("] {
            let want = matches!(text, "${NET}" | "a,$(NET)@x" | r#"[{"name":"${{NET}}"}]"#);
            assert_eq!(has_variable(text), want, "{text}");
        }
    }
}
