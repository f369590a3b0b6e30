//! The keys of the plugins, with values that they accept and values that they refuse.

/// A key, values that the reader accepts, and values that it refuses or that matter to it.
pub type NetworkKey = (&'static str, &'static [&'static str], &'static [&'static str]);

/// The plugins that really run, and their keys. Values are JSON.
pub const PLUGINS: &[(&str, &[NetworkKey])] = &[
    (
        "macvlan",
        &[
            ("master", &[r#""eth0""#], &[r#""""#]),
            ("mode", &[r#""bridge""#, r#""private""#, r#""vepa""#, r#""""#], &[r#""l2""#, r#""Bridge""#, r#""none""#]),
            ("mtu", &["0", "1400"], &["-1"]),
            ("mac", &[r#""02:00:00:00:00:01""#, r#""""#], &[r#""02:00""#, r#""zz:00:00:00:00:01""#]),
            ("bcqueuelen", &["0", "100"], &["-1", "4294967296"]),
            ("linkInContainer", &["false", "false", "false", "true"], &[]),
            ("runtimeConfig", &["{}", r#"{"mac":"02:00:00:00:00:02"}"#], &[r#"{"mac":"zz"}"#, r#"{"mac":5}"#]),
        ],
    ),
    (
        "ipvlan",
        &[
            ("master", &[r#""eth0""#], &[]),
            ("mode", &[r#""l2""#, r#""l3""#, r#""l3s""#, r#""""#], &[r#""bridge""#, r#""L2""#]),
            ("mtu", &["0", "1400"], &[]),
            ("linkInContainer", &["false", "false", "false", "true"], &[]),
        ],
    ),
    (
        "vlan",
        &[
            ("master", &[r#""eth0""#, r#""eth0""#, r#""eth0""#], &[r#""""#]),
            ("vlanId", &["0", "5", "4094"], &["-1", "4095", "70000"]),
            ("mtu", &["0", "1400"], &["-1"]),
            ("linkInContainer", &["false", "false", "false", "true"], &[]),
        ],
    ),
    (
        "bridge",
        &[
            ("bridge", &[r#""br1""#, r#""br-0.1""#], &[r#""""#, r#""a/b""#, r#""a-name-that-is-too-long""#]),
            ("vlan", &["0", "5", "4094"], &["-1", "4095"]),
            (
                "vlanTrunk",
                &["[]", r#"[{"id":5}]"#, r#"[{"minID":1,"maxID":3},{"id":9}]"#, "[{}]"],
                &[
                    "[null]",
                    r#"[{"id":0}]"#,
                    r#"[{"minID":1}]"#,
                    r#"[{"maxID":1}]"#,
                    r#"[{"minID":5,"maxID":1}]"#,
                    r#"[{"minID":0,"maxID":4095}]"#,
                ],
            ),
            ("hairpinMode", &["true", "false"], &[]),
            ("promiscMode", &["true", "false"], &[]),
            ("disableContainerInterface", &["true", "false"], &[]),
            ("isGateway", &["false", "true"], &[]),
            ("isDefaultGateway", &["false", "true"], &[]),
            ("forceAddress", &["false", "true"], &[]),
            ("ipMasq", &["false", "true"], &[]),
            ("ipMasqBackend", &[r#""iptables""#, r#""nftables""#, r#""""#], &[r#""x""#]),
            ("macspoofchk", &["false", "false", "false", "true"], &[]),
            ("enabledad", &["false", "true"], &[]),
            ("portIsolation", &["false", "true"], &[]),
            ("preserveDefaultVlan", &["false", "true"], &[]),
            ("mtu", &["0", "1400"], &["-1", "30"]),
            ("args", &["{}", r#"{"cni":{"mac":"02:00:00:00:00:06"}}"#], &[r#"{"cni":{"mac":"zz"}}"#, r#"{"cni":5}"#]),
            ("runtimeConfig", &["{}", r#"{"mac":"02:00:00:00:00:02"}"#], &[r#"{"mac":"zz"}"#]),
        ],
    ),
    (
        "host-device",
        &[
            ("device", &[r#""spare0""#, r#""spare0""#], &[r#""""#]),
            ("hwaddr", &[r#""02:00:00:00:00:99""#], &[r#""""#, r#""zz""#, r#""02:00""#]),
            ("kernelpath", &[r#""/sys/devices/pci0000:ff/x""#], &[r#""""#, r#""x""#, r#""/dev/x""#]),
            ("pciBusID", &[r#""ffff:01:00.0""#], &[r#""""#]),
            ("DPDKMode", &["false", "false", "true"], &[]),
            ("runtimeConfig", &["{}"], &[r#"{"deviceID":"ffff:01:00.0"}"#, r#"{"deviceID":5}"#]),
        ],
    ),
];

/// The keys of a plugin that does not run.
pub const SIMULATED: &[NetworkKey] = &[
    ("capabilities", &["{}", r#"{"mac":true}"#], &[r#"{"mac":1}"#, "[]"]),
    ("dns", &[r#"{"nameservers":["10.0.0.1"]}"#], &[r#"{"search":"x"}"#]),
    ("prevResult", &["{}"], &["[]"]),
    ("args", &["{}", "5"], &[]),
    ("mac", &[r#""02:00:00:00:00:01""#, r#""""#], &[r#""02:00:00:00:01""#, r#""zz""#]),
    ("deviceID", &[r#""""#, r#""0000:03:00.1""#, "null"], &["5", "[]"]),
    ("resourceName", &[r#""a.io/b""#, r#""b""#], &["5"]),
];

/// Plugins that change an interface.
pub const CHAINED: &[(&str, &[NetworkKey])] = &[
    (
        "tuning",
        &[
            ("sysctl", &[r#"{"net.core.somaxconn":"500"}"#, "{}"], &[r#"{"net.core.somaxconn":5}"#]),
            ("mtu", &["1400"], &["-1"]),
            ("mac", &[r#""02:00:00:00:00:03""#, r#""""#], &[r#""zz""#, r#""02:00""#]),
            ("promisc", &["true", "false"], &[]),
            ("allmulti", &["true", "false"], &[]),
            ("txQLen", &["0", "500"], &[]),
            ("dataDir", &[r#""/run/tuning""#, r#""""#], &[]),
            ("runtimeConfig", &["{}", r#"{"mac":"02:00:00:00:00:04"}"#], &[r#"{"mac":"zz"}"#, r#"{"mac":5}"#]),
            (
                "args",
                &["{}", r#"{"cni":{"mtu":1400}}"#, r#"{"cni":{"mac":"02:00:00:00:00:05","promisc":true}}"#],
                &[
                    r#"{"cni":{"sysctl":{"net.core.somaxconn":"5"}}}"#,
                    r#"{"cni":{"mtu":"x"}}"#,
                    r#"{"cni":{"mac":"zz"}}"#,
                    r#"{"cni":5}"#,
                ],
            ),
        ],
    ),
    (
        "vrf",
        &[("vrfname", &[r#""blue""#, r#""blue""#, r#""a-b""#], &[r#""""#]), ("table", &["10"], &["-1", "4294967296"])],
    ),
    (
        "portmap",
        &[
            ("markMasqBit", &["0", "13", "31"], &["-1", "32"]),
            ("externalSetMarkChain", &[r#""X""#], &[]),
            ("snat", &["true", "false"], &[]),
            ("backend", &[r#""iptables""#, r#""nftables""#], &[r#""pf""#, r#""""#]),
            (
                "conditionsV4",
                &["[]", r#"["-s","10.0.0.0/8"]"#, r#"[""]"#],
                &[r#"["ip","saddr","10.0.0.0/8"]"#, r#""x""#],
            ),
            ("conditionsV6", &["[]", r#"["!","-s","fd00::/8"]"#], &[r#"["ip6","saddr","fd00::/8"]"#, "[5]"]),
            ("masqAll", &["true", "false"], &[]),
        ],
    ),
    (
        "firewall",
        &[
            ("ingressPolicy", &[r#""open""#, r#""""#, r#""same-bridge""#, r#""isolated""#], &[r#""x""#]),
            ("backend", &[r#""iptables""#, r#""""#, r#""x""#], &[r#""firewalld""#]),
            ("iptablesAdminChainName", &[r#""X""#, r#""""#], &[]),
            ("firewalldZone", &[r#""trusted""#, r#""""#], &[]),
        ],
    ),
    (
        "bandwidth",
        &[
            ("ingressRate", &["0", "1000000"], &["-1"]),
            ("ingressBurst", &["0", "1000000"], &["34359738368", "34359738367"]),
            ("egressRate", &["0", "1000000"], &["-1"]),
            ("egressBurst", &["0", "1000000"], &["34359738368"]),
            ("runtimeConfig", &["{}", r#"{"bandwidth":{}}"#], &[r#"{"bandwidth":{"ingressRate":"1"}}"#]),
        ],
    ),
    (
        "sbr",
        &[
            ("addSourceHints", &["true", "false"], &[]),
            ("table", &["100", "1000"], &["-1", "0", "4294967296"]),
            ("gateways", &["[]"], &["5"]),
        ],
    ),
];
