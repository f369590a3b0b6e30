//! The keys of the IPAM plugins, with values that they accept and values that they refuse.

use crate::keys::NetworkKey;

/// IPAM sections.
pub const IPAM: &[(&str, &[NetworkKey])] = &[
    (
        "host-local",
        &[
            (
                "subnet",
                &[r#""10.0.0.0/24""#, r#""fd00::/64""#],
                &[r#""10.0.0.1/24""#, r#""10.0.0.0""#, r#""10.0.0.0/31""#, r#""x""#],
            ),
            ("rangeStart", &[r#""10.0.0.10""#], &[r#""10.0.1.1""#, r#""10.0.0.0""#, r#""fd00::1""#]),
            ("rangeEnd", &[r#""10.0.0.20""#], &[r#""10.0.0.5""#, r#""10.0.0.255""#, r#""10.9.0.1""#]),
            ("gateway", &[r#""10.0.0.1""#], &[r#""x""#, r#""10.0.9.1""#, r#""fd00::1""#]),
            ("routes", &[r#"[{"dst":"0.0.0.0/0"}]"#], &[r#"[{"dst":"x"}]"#, r#"[{}]"#]),
            (
                "ranges",
                &[r#"[[{"subnet":"10.1.0.0/24"}]]"#, "[]", r#"[[{"subnet":"10.1.0.0/24"}],[{"subnet":"fd01::/64"}]]"#],
                &[
                    "[[]]",
                    "[null]",
                    r#"[[{"subnet":"10.1.0.0/24"},{"subnet":"10.1.0.0/24"}]]"#,
                    r#"[[{"subnet":"10.1.0.0/24"}],[{"subnet":"10.1.0.0/16"}]]"#,
                    r#"[[{"subnet":"10.1.0.0/24"},{"subnet":"fd01::/64"}]]"#,
                    r#"[[{}]]"#,
                ],
            ),
            ("name", &[r#""x""#], &["5"]),
            ("dataDir", &[r#""/run/host-local""#, r#""""#], &[]),
            ("resolvConf", &[r#""""#], &[r#""/none""#]),
        ],
    ),
    (
        "whereabouts",
        &[
            (
                "range",
                &[r#""10.0.0.0/24""#, r#""10.0.0.5-10.0.0.9/24""#, r#""fd00::/64""#],
                &[r#""10.0.0.0""#, r#""x""#, r#""10.0.0.9-10.0.0.5/24""#],
            ),
            ("range_start", &[r#""10.0.0.10""#], &[r#""x""#]),
            ("range_end", &[r#""10.0.0.20""#], &[r#""x""#]),
            ("gateway", &[r#""10.0.0.1""#], &[r#""x""#, r#""10.0.9.1""#, r#""fd00::1""#]),
            ("exclude", &[r#"["10.0.0.0/28"]"#, "[]"], &[r#"["x"]"#, r#"["10.0.0.1"]"#]),
            ("ipRanges", &[r#"[{"range":"10.2.0.0/24"}]"#], &[r#"[{"range":"x"}]"#, "[{}]"]),
            (
                "routes",
                &[r#"[{"dst":"0.0.0.0/0"}]"#, r#"[{"dst":"10.9.0.0/16","gw":"10.0.0.1"}]"#],
                &[r#"[{"dst":"x"}]"#, r#"[{"dst":"10.9.0.0/16","gw":"10.0.9.1"}]"#],
            ),
            (
                "addresses",
                &["[]", r#"[{"address":"10.8.0.5/24"}]"#, r#"[{"address":"10.8.0.5/24","gateway":"10.8.0.1"}]"#],
                &[
                    r#"[{"address":"10.8.0.5"}]"#,
                    r#"[{"address":"x"}]"#,
                    "[{}]",
                    r#"[{"address":"10.8.0.5/24","gateway":"x"}]"#,
                ],
            ),
            ("dns", &["{}", r#"{"nameservers":["10.0.0.1"]}"#], &[r#"{"nameservers":"x"}"#]),
            ("name", &[r#""x""#], &["5"]),
            ("network_name", &[r#""blue""#, r#""""#], &["5"]),
            ("enable_overlapping_ranges", &["true", "false"], &[]),
            (
                "kubernetes",
                &["{}", r#"{"kubeconfig":"/etc/cni/net.d/w.conf"}"#, r#"{"kubeconfig":"","k8s_api_root":""}"#],
                &[r#"{"kubeconfig":5}"#],
            ),
            ("log_file", &[r#""/run/whereabouts.log""#, r#""""#], &[]),
            ("log_level", &[r#""debug""#, r#""x""#], &[]),
            ("sleep_for_race", &["0"], &[]),
            ("Gateway", &[r#""10.0.0.1""#, r#""""#], &["5"]),
            ("configuration_path", &[r#""/none""#, r#""""#], &[]),
            ("reconciler_cron_expression", &[r#""30 4 * * *""#, r#""x""#], &[]),
            ("leader_lease_duration", &["0", "1500"], &["-1"]),
            ("leader_renew_deadline", &["0", "1000"], &["-1"]),
            ("leader_retry_period", &["0", "500"], &["-1"]),
            ("podName", &[r#""x""#], &["5"]),
            ("podNamespace", &[r#""x""#], &["5"]),
        ],
    ),
    (
        "static",
        &[
            (
                "addresses",
                &[
                    r#"[{"address":"10.0.0.5/24"}]"#,
                    r#"[{"address":"10.0.0.5/24","gateway":"10.0.0.1"}]"#,
                    r#"[{"address":"fd00::5/64"}]"#,
                ],
                &[
                    "[]",
                    r#"[{"address":"10.0.0.5"}]"#,
                    r#"[{"address":"x"}]"#,
                    r#"[{}]"#,
                    r#"[{"address":"10.0.0.5/24","gateway":"x"}]"#,
                    r#"[{"address":"10.0.0.5/24","gateway":"10.0.9.1"}]"#,
                ],
            ),
            ("routes", &[r#"[{"dst":"10.9.0.0/16"}]"#, "[]"], &[r#"[{"dst":"x"}]"#]),
            ("dns", &[r#"{"nameservers":["10.0.0.1"]}"#], &[r#"{"nameservers":"x"}"#]),
            ("name", &[r#""x""#], &["5"]),
        ],
    ),
    (
        "dhcp",
        &[
            ("daemonSocketPath", &[r#""/run/cni/dhcp.sock""#, r#""""#], &[]),
            ("priority", &["0", "100", "-1"], &[]),
            (
                "request",
                &[r#"[{"option":"routers"}]"#, r#"[{"skipDefault":true},{"skipDefault":false,"option":"12"}]"#, "[]"],
                &[
                    r#"[{"option":"x"}]"#,
                    r#"[{"option":"256"}]"#,
                    r#"[{"option":""}]"#,
                    r#"[{"option":12}]"#,
                    "[null]",
                    "[{}]",
                ],
            ),
            (
                "provide",
                &[r#"[{"option":"host-name","value":"a"}]"#, r#"[{"option":"host-name","fromArg":"K8S_POD_NAME"}]"#],
                &[
                    r#"[{"option":"x","value":"a"}]"#,
                    r#"[{"option":"-1","value":"a"}]"#,
                    r#"[{"option":"host-name"}]"#,
                    r#"[{"option":"12","value":"a","fromArg":"b"}]"#,
                    "[{}]",
                ],
            ),
        ],
    ),
];

/// What an IPAM plugin reads beside its section.
pub const BESIDE: &[(&str, &[NetworkKey])] = &[
    (
        "host-local",
        &[
            (
                "runtimeConfig",
                &["{}", r#"{"ipRanges":[[{"subnet":"10.5.0.0/24"}]]}"#],
                &[r#"{"ipRanges":[[]]}"#, r#"{"ipRanges":[[{"subnet":"x"}]]}"#, r#"{"ips":["x"]}"#],
            ),
            (
                "args",
                &["{}", r#"{"cni":{}}"#, r#"{"cni":{"ips":[]}}"#],
                &[r#"{"cni":{"ips":["x"]}}"#, r#"{"cni":{"ips":5}}"#],
            ),
        ],
    ),
    (
        "static",
        &[
            ("runtimeConfig", &["{}", r#"{"ips":["10.6.0.5/24"]}"#], &[r#"{"ips":["x"]}"#, r#"{"ips":5}"#]),
            (
                "args",
                &["{}", r#"{"cni":{"ips":["10.6.0.5/24"]}}"#],
                &[r#"{"cni":{"ips":["x"]}}"#, r#"{"cni":{"ips":5}}"#],
            ),
        ],
    ),
];
