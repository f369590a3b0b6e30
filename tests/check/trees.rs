//! Repositories as they are: a Helm chart, a kustomize tree, a large one with everything.

use std::fmt::Write as _;
use std::fs;

use serde_json::json;

use super::{BAD, GOOD, closing_line, nadmit_in, summary, text, tree};

const NETWORK: &str = "apiVersion: sriovnetwork.openshift.io/v1
kind: SriovNetwork
metadata:
  name: data
  namespace: openshift-sriov-network-operator
spec:
  resourceName: cx7
  networkNamespace: apps
  vlan: 100
";

const TEMPLATE: &str = r#"{{- range .Values.networks }}
---
apiVersion: k8s.cni.cncf.io/v1
kind: NetworkAttachmentDefinition
metadata:
  name: {{ .name }}
  {{- include "nets.labels" . | nindent 2 }}
spec:
  config: '{{ .config | toJson }}'
{{- end }}
"#;

#[test]
fn a_helm_chart() {
    let crd = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a}\n";
    let quoted = GOOD.replace("name: good", "name: '{{ .Release.Name }}'");
    let tree = tree(&[
        (".git/", ""),
        (".github/workflows/ci.yaml", "on: push\njobs: {}\n"),
        ("README.md", "# Networks\n"),
        ("charts/nets/Chart.yaml", "apiVersion: v2\nname: nets\nversion: 0.1.0\n"),
        ("charts/nets/values.yaml", "networks: []\n"),
        ("charts/nets/values.schema.json", "{\"type\": \"object\"}\n"),
        ("charts/nets/ci/test-values.yaml", "networks:\n- name: a\n"),
        ("charts/nets/crds/crd.yaml", crd),
        ("charts/nets/templates/_helpers.tpl", "{{- define \"nets.labels\" }}\n{{- end }}\n"),
        ("charts/nets/templates/NOTES.txt", "{{ .Release.Name }}\n"),
        ("charts/nets/templates/net.yaml", TEMPLATE),
        // It parses, but its name is not the one that is applied.
        ("charts/nets/templates/quoted.yaml", &quoted),
        ("charts/nets/templates/plain.yaml", GOOD),
    ]);
    let output = nadmit_in(tree.path(), &["check", "-o", "json", "."]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let want =
        json!({"other_kinds": 1, "no_kind": 4, "helm_templates": 2, "kustomize_patches": 0, "ignored": 0, "links": 0});
    assert_eq!((&summary(&output)["documents"], &summary(&output)["skipped"]), (&json!(1), &want));
    assert_eq!(
        text(&output.stderr),
        "nadmit: 2 Helm templates are not judged, such as ./charts/nets/templates/net.yaml; render them: helm template CHART | nadmit check -\n\
         nadmit: 1 document judged; skipped: 1 of other kinds, 4 without a kind, 2 Helm templates; default policy\n"
    );
    for (name, want) in [
        ("charts/nets/values.yaml", "not a Kubernetes object: `kind` is missing".to_owned()),
        (
            "charts/nets/templates/quoted.yaml",
            format!(
                "error: charts/nets/templates/quoted.yaml: line 4: a Helm template, not a manifest; render it first: helm template {} | nadmit check -",
                fs::canonicalize(tree.path()).unwrap().join("charts/nets").display()
            ),
        ),
    ] {
        let output = nadmit_in(tree.path(), &["check", name]).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(text(&output.stderr).contains(&want), "{}\nwanted: {want}", text(&output.stderr));
    }
}

#[test]
fn a_kustomize_tree() {
    let kustomization =
        "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [network.yaml, nad.yaml]\n";
    // Without the rest of the network, which alone would be denied.
    let patch =
        "apiVersion: sriovnetwork.openshift.io/v1\nkind: SriovNetwork\nmetadata: {name: data}\nspec: {vlan: 200}\n";
    let tree = tree(&[
        (".git/", ""),
        ("base/kustomization.yaml", kustomization),
        ("base/network.yaml", NETWORK),
        ("base/nad.yaml", GOOD),
        (
            "overlays/prod/kustomization.yml",
            "resources: [../../base, namespace.yaml]\npatches:\n- path: vlan.yaml\n- path: ops.yaml\n  target: {kind: SriovNetwork}\n",
        ),
        ("overlays/prod/vlan.yaml", patch),
        ("overlays/prod/ops.yaml", "- {op: add, path: /spec/trust, value: 'on'}\n"),
        ("overlays/prod/namespace.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: apps}\n"),
        ("overlays/test/kustomization.yaml", "resources: [../../base]\npatchesStrategicMerge: [../shared/vlan.yaml]\n"),
        ("overlays/shared/vlan.yaml", patch),
    ]);
    let output = nadmit_in(tree.path(), &["check", "-o", "json", "."]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}{}", text(&output.stdout), text(&output.stderr));
    let want =
        json!({"other_kinds": 2, "no_kind": 2, "helm_templates": 0, "kustomize_patches": 3, "ignored": 0, "links": 0});
    assert_eq!((&summary(&output)["documents"], &summary(&output)["skipped"]), (&json!(2), &want));
    assert!(
        text(&output.stderr).starts_with(
            "nadmit: 3 kustomize patches are not judged, such as ./overlays/prod/ops.yaml; render them: kustomize build DIRECTORY | nadmit check -\n"
        ),
        "{}",
        text(&output.stderr)
    );
    let named = nadmit_in(tree.path(), &["check", "overlays/shared/vlan.yaml"]).output().unwrap();
    assert_eq!(named.status.code(), Some(1), "what is named is judged as it is");
}

/// Directories may be for different clusters: only NADs of one directory are certainly used together.
#[test]
fn nads_of_other_directories_deny_nothing() {
    let ovn = |name: &str, vlan: u16| {
        let config = json!({
            "cniVersion": "1.0.0", "name": "blue", "type": "ovn-k8s-cni-overlay", "topology": "localnet",
            "netAttachDefName": format!("apps/{name}"), "vlanID": vlan,
        });
        let nad = json!({
            "apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition",
            "metadata": { "name": name, "namespace": "apps" }, "spec": { "config": config.to_string() },
        });
        format!("{nad}\n")
    };
    let (first, second, same) = (ovn("a", 10), ovn("b", 20), ovn("b", 10));
    let one_file = format!("{first}---\n{second}");
    let (both, agreeing) = (format!("{first}---\n{same}"), &second);
    for (files, counts) in [
        (vec![("prod/a.yaml", &first), ("prod/b.yaml", &second)], (1, 0)),
        (vec![("all.yaml", &one_file)], (1, 0)),
        (vec![("dev/a.yaml", &first), ("prod/b.yaml", &second)], (0, 1)),
        // Of a NAD with two different manifests nothing is known.
        (vec![("dev/nads.yaml", &both), ("prod/b.yaml", agreeing)], (0, 0)),
    ] {
        let tree = tree(&files.iter().map(|(name, text)| (*name, text.as_str())).collect::<Vec<_>>());
        let output = nadmit_in(tree.path(), &["check", "-o", "json", "."]).output().unwrap();
        let found = (&summary(&output)["deny"], &summary(&output)["warn"]);
        assert_eq!(found, (&json!(counts.0), &json!(counts.1)), "{files:?} {}", text(&output.stdout));
    }
}

/// No name, namespace or annotation cures what a plugin rejects in its config, and a patch may replace it.
#[test]
fn an_overlay_that_names_objects_cures_no_config() {
    let bridge = r#"{"cniVersion":"1.0.0","type":"bridge","vlan":"100"}"#;
    let resource = "k8s.v1.cni.cncf.io/resourceName: a.io/b";
    let annotated = format!("resources: [../base]\ncommonAnnotations: {{{resource}}}\n");
    for (config, overlay, code) in [
        (bridge, "resources: [../base]\nnamespace: prod\ncommonAnnotations: {a: b}\n", 1),
        (bridge, "resources: [../base]\npatches: [{patch: '[]', target: {kind: NetworkAttachmentDefinition}}]\n", 0),
        // This annotation gives the plugin its device.
        (r#"{"cniVersion":"1.0.0","type":"host-device"}"#, &annotated, 0),
    ] {
        let nad = json!({
            "apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition",
            "metadata": { "name": "net" }, "spec": { "config": config },
        });
        let tree = tree(&[
            ("base/kustomization.yaml", "resources: [nad.yaml]\n"),
            ("base/nad.yaml", &nad.to_string()),
            ("prod/kustomization.yaml", overlay),
        ]);
        let output = nadmit_in(tree.path(), &["check", "."]).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{overlay}: {}", text(&output.stdout));
    }
}

/// What an overlay adds is not in the base: its findings only warn, whatever the overlay uses, unless it is named itself.
#[test]
fn a_base_that_overlays_complete() {
    let add = "k8s.v1.cni.cncf.io/resourceName: openshift.io/x";
    let patch = format!(
        "apiVersion: k8s.cni.cncf.io/v1\nkind: NetworkAttachmentDefinition\nmetadata: {{name: bad, annotations: {{{add}}}}}\n"
    );
    let component = "kind: Component\npatches: [{path: patch.yaml}]\n";
    for (overlay, is_changed) in [
        (format!("resources: [../base]\ncommonAnnotations: {{{add}}}\n"), true),
        ("resources: [../base]\npatches: [{path: patch.yaml}]\n".to_owned(), true),
        ("bases: [../base]\npatchesStrategicMerge: [patch.yaml]\n".to_owned(), true),
        ("resources: [../base]\ncomponents: [../component]\n".to_owned(), true),
        ("resources: [../middle]\nnamespace: prod\n".to_owned(), true),
        ("resources: [../base]\nimages: [{name: a, newTag: b}]\n".to_owned(), false),
        ("resources: [../base]\npatches: [{patch: '[]', target: {kind: Deployment}}]\n".to_owned(), false),
        ("namespace: prod\n".to_owned(), false),
    ] {
        let tree = tree(&[
            ("base/kustomization.yaml", "resources: [nad.yaml]\n"),
            ("base/nad.yaml", BAD),
            ("middle/kustomization.yaml", "resources: [../base]\n"),
            ("component/kustomization.yaml", component),
            ("component/patch.yaml", &patch),
            ("prod/patch.yaml", &patch),
            ("prod/kustomization.yaml", &overlay),
        ]);
        // Of a file that no kustomization names, nobody knows that it is a patch.
        let arguments = ["check", "-o", "json", ".", "--exclude", "patch.yaml"];
        let output = nadmit_in(tree.path(), &arguments).output().unwrap();
        let errors = text(&output.stderr);
        assert_eq!(output.status.code(), Some(i32::from(!is_changed)), "{overlay}: {errors}");
        let notice = "nadmit: findings on 1 object only warn, in ./base/nad.yaml, because a kustomization changes it; judge the result: \
                      kustomize build DIRECTORY | nadmit check -";
        assert_eq!(errors.contains(notice), is_changed, "{overlay}: {errors}");
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let finding = &report["documents"][0]["findings"][0];
        let want = if is_changed { (json!("warn"), json!("kustomization")) } else { (json!("deny"), json!(null)) };
        assert_eq!((&finding["action"], &finding["because"]), (&want.0, &want.1), "{overlay}");
        let output = nadmit_in(tree.path(), &["check", "base/nad.yaml"]).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "what is named is judged as it is: {}", text(&output.stderr));
    }
}

/// 5,000 files: services with their manifests, charts, ignored dependencies, and a configuration.
#[test]
fn a_large_repository() {
    let root = tempfile::tempdir().unwrap();
    let write = |name: &str, content: &str| {
        let path = root.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    };
    let deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\n---\napiVersion: v1\nkind: Service\n";
    let mut written = 0;
    for number in 0..500 {
        let service = format!("services/s{number:03}");
        let nad = GOOD.replace("name: good", &format!("name: net-{number}\n  namespace: apps"));
        let mut lock = String::from("{\"packages\": {");
        for package in 0..20 {
            let _ = write!(lock, "\"p{package}\": {{\"version\": \"1.0.{number}\"}},");
        }
        lock.push_str("\"end\": {}}}\n");
        for (name, content) in [
            ("deploy/deployment.yaml", deployment),
            ("deploy/nad.yaml", &nad),
            ("package.json", "{\"name\": \"a\"}\n"),
            ("package-lock.json", &lock),
            ("src/main.ts", "export {}\n"),
            ("tsconfig.json", "{\n  // comment\n  \"strict\": true,\n}\n"),
            ("docker-compose.yml", "services: {}\n"),
            ("node_modules/a/package.json", "{\"name\": \"a\"}\n"),
            ("node_modules/a/bad.yaml", BAD),
            ("generated/bad.yaml", BAD),
        ] {
            write(&format!("{service}/{name}"), content);
            written += 1;
        }
    }
    assert_eq!(written, 5000);
    write(".git/HEAD", "ref: refs/heads/main\n");
    write(".gitignore", "node_modules/\n");
    write(".nadmit.yaml", "policy: ops/policy.yaml\nexclude:\n- generated/\n");
    write("ops/policy.yaml", "mode: enforce\n");
    write("ops/chart/Chart.yaml", "apiVersion: v2\nname: c\n");
    write("ops/chart/templates/net.yaml", TEMPLATE);
    let start = std::time::Instant::now();
    let output = nadmit_in(root.path(), &["check", "-o", "json", "."]).output().unwrap();
    // Shown with `--nocapture`. Only a time that no machine needs is an error.
    let took = start.elapsed();
    println!("check of 5,000 files took {took:?}");
    assert!(took < std::time::Duration::from_secs(60), "{took:?}");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let want = json!({"other_kinds": 1000, "no_kind": 2002, "helm_templates": 1, "kustomize_patches": 0, "ignored": 1000, "links": 0});
    assert_eq!((&summary(&output)["documents"], &summary(&output)["skipped"]), (&json!(500), &want));
    assert_eq!(
        closing_line(&output),
        "nadmit: 500 documents judged; skipped: 1000 of other kinds, 2002 without a kind, 1 Helm template, 1000 ignored paths; \
         configuration .nadmit.yaml, policy ops/policy.yaml"
    );
    // One mistake among them is found.
    write("services/s321/deploy/bad.yaml", BAD);
    let output = nadmit_in(root.path(), &["check", "-o", "json", "."]).output().unwrap();
    assert_eq!((output.status.code(), &summary(&output)["deny"]), (Some(1), &json!(1)));
}
