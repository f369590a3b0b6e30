use super::super::testing::{NET, TestDocument, finding};
use super::*;

fn of(findings: Vec<Finding>) -> Option<Value> {
    report(Reports::Openreports, &NET, &TestDocument::new(findings).verdict)
}

fn with(mut finding: Finding, would: Option<Action>, because: Option<ExcuseReason>) -> Finding {
    (finding.would, finding.because) = (would, because);
    finding
}

#[test]
fn report_is_complete_and_has_no_timestamps() {
    let found = finding("nad/field-type", Action::Deny, "`vlan` is \"5\", expected a whole number")
        .with_note("sriov cannot decode it")
        .in_config("/vlan");
    insta::assert_snapshot!(format!("{:#}", of(vec![found]).unwrap()), @r##"
    {
      "apiVersion": "openreports.io/v1alpha1",
      "kind": "Report",
      "metadata": {
        "labels": {
          "app.kubernetes.io/managed-by": "nadmit",
          "nadmit.io/report": "object"
        },
        "name": "nadmit-f6b1",
        "namespace": "operator",
        "ownerReferences": [
          {
            "apiVersion": "sriovnetwork.openshift.io/v1",
            "kind": "SriovNetwork",
            "name": "net",
            "uid": "f6b1"
          }
        ]
      },
      "results": [
        {
          "category": "SR-IOV networks",
          "message": "`vlan` is \"5\", expected a whole number: sriov cannot decode it",
          "policy": "nad",
          "properties": {
            "action": "deny",
            "configPointer": "/vlan",
            "help": "fix it",
            "pointer": "/spec/config"
          },
          "result": "fail",
          "rule": "nad/field-type",
          "scored": true,
          "severity": "high",
          "source": "nadmit"
        }
      ],
      "scope": {
        "apiVersion": "sriovnetwork.openshift.io/v1",
        "kind": "SriovNetwork",
        "name": "net",
        "namespace": "operator",
        "uid": "f6b1"
      },
      "summary": {
        "error": 0,
        "fail": 1,
        "pass": 0,
        "skip": 0,
        "warn": 0
      }
    }
    "##);
}

#[test]
fn maps_each_action_to_a_report_result() {
    let excepted = || Some(ExcuseReason::Exception("known".to_owned()));
    for (action, would, because, want) in [
        (Action::Deny, None, None, Some(("fail", "high", true))),
        (Action::Patch, None, None, Some(("fail", "medium", true))),
        (Action::Warn, None, None, Some(("warn", "low", false))),
        (Action::Warn, None, Some(ExcuseReason::Exempt), Some(("warn", "low", false))),
        // In audit mode the result is that of the rule's own action.
        (Action::Warn, Some(Action::Deny), None, Some(("fail", "high", true))),
        (Action::Warn, Some(Action::Patch), None, Some(("fail", "medium", true))),
        (Action::Audit, None, excepted(), Some(("skip", "info", false))),
        (Action::Audit, None, None, None),
        (Action::Audit, None, Some(ExcuseReason::Deleting), None),
        (Action::Off, None, None, None),
    ] {
        let report = of(vec![with(finding("nad/schema", action, "m"), would, because.clone())]);
        let result = report.as_ref().map(|report| &report["results"][0]);
        let found = result.map(|result| {
            let text = |key: &str| result[key].as_str().unwrap();
            (text("result"), text("severity"), result["scored"] == true)
        });
        assert_eq!(found, want, "{action:?} {would:?} {because:?}");
    }
}

#[test]
fn no_findings_means_no_report() {
    assert!(of(Vec::new()).is_none());
    let found = TestDocument::new(vec![finding("nad/schema", Action::Deny, "m")]).verdict;
    assert!(report(Reports::Off, &NET, &found).is_none());
    let other = report(Reports::Wgpolicyk8s, &NET, &found).unwrap();
    assert_eq!((&other["apiVersion"], &other["kind"]), (&json!("wgpolicyk8s.io/v1alpha2"), &json!("PolicyReport")));
}

#[test]
fn results_are_ordered_by_severity_and_counted() {
    let report = of(vec![
        with(finding("nad/schema", Action::Audit, "a"), None, Some(ExcuseReason::Exception("known".to_owned()))),
        finding("nad/schema", Action::Warn, "b"),
        finding("nad/schema", Action::Deny, "c"),
        finding("nad/schema", Action::Warn, "d"),
    ])
    .unwrap();
    let messages: Vec<_> = report["results"].as_array().unwrap().iter().map(|result| &result["message"]).collect();
    assert_eq!(messages, ["c", "b", "d", "a"]);
    assert_eq!(report["summary"], json!({"pass": 0, "fail": 1, "warn": 2, "error": 0, "skip": 1}));
    assert_eq!(report["results"][3]["properties"]["reason"], "known");
}

/// Neither many findings nor long ones make a large report.
#[test]
fn report_size_is_bounded() {
    let long = "\u{1}".repeat(5000);
    let findings = |count: usize, words: &str| (0..count).map(|_| finding("nad/schema", Action::Warn, words)).collect();
    for (count, words, kept) in [(100, "m", 100), (101, "m", 101), (5000, "m", 101), (1000, long.as_str(), 81)] {
        let mut findings: Vec<Finding> = findings(count, words);
        findings.push(finding("nad/schema", Action::Deny, "the worst"));
        let report = of(findings).unwrap();
        let results = report["results"].as_array().unwrap();
        assert_eq!(results[0]["message"], "the worst");
        assert!(results.len() <= kept + 1, "{count}: {}", results.len());
        assert!(report.to_string().len() < MAX_BYTES + 2048, "{}", report.to_string().len());
        let shown = results.iter().filter(|result| result["rule"] != "report/left-out").count();
        let last = results.last().unwrap()["message"].as_str().unwrap();
        let missing = count + 1 - shown;
        assert_eq!(last.starts_with(&format!("{missing} more findings ")), missing > 0, "{last}");
    }
}

#[test]
fn digest_covers_only_own_fields() {
    let report = of(vec![finding("nad/schema", Action::Warn, "m")]).unwrap();
    let same = |change: &dyn Fn(&mut Value)| {
        let mut changed = report.clone();
        change(&mut changed);
        digest(&changed) == digest(&report)
    };
    let others: [&dyn Fn(&mut Value); 5] = [
        &|report| report["metadata"]["labels"]["team"] = "a".into(),
        &|report| report["metadata"]["resourceVersion"] = "7".into(),
        &|report| report["metadata"]["ownerReferences"][0]["controller"] = true.into(),
        &|report| report["results"][0]["new"] = json!({}),
        &|report| report["summary"]["new"] = 0.into(),
    ];
    for (at, change) in others.into_iter().enumerate() {
        assert!(same(change), "{at}");
    }
    let ours: [&dyn Fn(&mut Value); 7] = [
        &|report| report["metadata"]["labels"][MANAGED_BY] = "a".into(),
        &|report| report["metadata"]["ownerReferences"] = json!([]),
        &|report| report["scope"]["name"] = "other".into(),
        &|report| report["summary"]["fail"] = 9.into(),
        &|report| report["results"][0]["message"] = "all is well".into(),
        &|report| report["results"][0]["properties"]["new"] = "".into(),
        &|report| report["results"] = json!([]),
    ];
    for (at, change) in ours.into_iter().enumerate() {
        assert!(!same(change), "{at}");
    }
    // The server decides the order of members.
    let text = r#"{"results":[{"rule":"a","policy":"b"}]}"#;
    let turned = r#"{"results":[{"policy":"b","rule":"a"}]}"#;
    let [one, other] = [text, turned].map(|text| digest(&serde_json::from_str(text).unwrap()));
    assert_eq!(one, other);
}

#[test]
fn the_last_result_says_how_many_are_left_out() {
    let messages = |count: usize| -> Vec<String> {
        let report = of(vec![finding("nad/schema", Action::Warn, "m"); count]).unwrap();
        let results = report["results"].as_array().unwrap();
        results.iter().map(|result| result["message"].as_str().unwrap().to_owned()).collect()
    };
    let all = messages(MAX_RESULTS);
    assert_eq!((all.len(), all.last().map(String::as_str)), (MAX_RESULTS, Some("m")));
    let more = messages(MAX_RESULTS + 3);
    assert_eq!(more.len(), MAX_RESULTS + 1);
    assert!(more.last().unwrap().starts_with("3 more findings are not in this report"), "{more:?}");
}
