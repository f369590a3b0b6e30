//! Arguments of the certificate Secret.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::serve::duration;
use crate::cluster::client::ServiceRef;
use crate::cluster::identity::certificates::Settings;
use crate::tls::Lifetimes;
use crate::tls::token::Schedule;

/// The certificate Secret.
#[derive(Debug, Args)]
pub(super) struct Secret {
    /// The Secret in nadmit's namespace with a CA and a certificate, which the replicas create and renew themselves
    #[arg(long, env = "NADMIT_TLS_SECRET", value_name = "NAME", conflicts_with_all = ["tls_cert", "tls_key", "cert_dir"])]
    tls_secret: Option<String>,
    /// How long a CA in --tls-secret is valid; replaced after two thirds of it. At least nine times
    /// --propagation-time, and at most ten years [default: 8760h]
    #[arg(long, env = "NADMIT_CA_LIFETIME", value_name = "TIME", value_parser = lifetime)]
    ca_lifetime: Option<Duration>,
    /// How long a certificate in --tls-secret is valid, at most until its CA expires; renewed after two thirds of it. If this is
    /// less than 6h, the token in the registered paths is also replaced this often. At least three times --propagation-time
    /// [default: 2160h]
    #[arg(long, env = "NADMIT_LEAF_LIFETIME", value_name = "TIME", value_parser = lifetime)]
    leaf_lifetime: Option<Duration>,
    /// How long all replicas and API servers may take to see a changed certificate, CA bundle or token; the next step of a rotation
    /// waits this long. Replicas read their Secrets twelve times in it. From 1s to 1h; longer if your API servers are slow to
    /// see changed webhook configurations, and the same for all replicas [default: 60s]
    #[arg(long, env = "NADMIT_PROPAGATION_TIME", value_name = "TIME", value_parser = propagation_time)]
    propagation_time: Option<Duration>,
}

/// The longest that a token is accepted.
const TOKEN_LIFETIME: Duration = Duration::from_secs(6 * 3600);
/// The bounds of `--propagation-time`. Below, rotations outrun the API servers; above, a token could not be rotated in its
/// lifetime.
const MIN_PROPAGATION: Duration = Duration::from_secs(1);
const MAX_PROPAGATION: Duration = Duration::from_secs(3600);
/// The longest lifetime: ten years.
const MAX_LIFETIME: Duration = Duration::from_secs(10 * 365 * 86_400);
/// How many times `--propagation-time` a CA must be valid: a rotation takes two of them, and has a third of the lifetime.
const CA_PROPAGATIONS: u32 = 9;
/// How many times `--propagation-time` a certificate must be valid: all replicas read the next one in the last third of the
/// lifetime.
const LEAF_PROPAGATIONS: u32 = 3;

fn lifetime(text: &str) -> Result<Duration, String> {
    let time = duration(text)?;
    if time > MAX_LIFETIME { Err("at most ten years: 87600h".to_owned()) } else { Ok(time) }
}

fn propagation_time(text: &str) -> Result<Duration, String> {
    let time = duration(text)?;
    if (MIN_PROPAGATION..=MAX_PROPAGATION).contains(&time) {
        Ok(time)
    } else {
        Err("must be between 1s and 1h".to_owned())
    }
}

impl Secret {
    /// Whether there is a Secret with the certificate.
    pub(super) fn is_named(&self) -> bool {
        self.tls_secret.is_some()
    }

    /// The lifetime of tokens: as long as certificates, but at most a few hours. While nadmit is unreachable, the API server
    /// shows the path to whoever writes a NAD.
    pub(super) fn token_schedule(&self) -> anyhow::Result<Schedule> {
        let Lifetimes { leaf, propagation, .. } = self.lifetimes()?;
        Ok(Schedule { lifetime: leaf.min(TOKEN_LIFETIME), propagation })
    }

    /// A certificate that expires during its rotation would make every review fail.
    fn lifetimes(&self) -> anyhow::Result<Lifetimes> {
        let usual = Lifetimes::default();
        let lifetimes = Lifetimes {
            ca: self.ca_lifetime.unwrap_or(usual.ca),
            leaf: self.leaf_lifetime.unwrap_or(usual.leaf),
            propagation: self.propagation_time.unwrap_or(usual.propagation),
        };
        let Lifetimes { ca, leaf, propagation } = lifetimes;
        for (name, lifetime, least) in
            [("--ca-lifetime", ca, CA_PROPAGATIONS), ("--leaf-lifetime", leaf, LEAF_PROPAGATIONS)]
        {
            if lifetime < propagation * least {
                anyhow::bail!(
                    "{name} {lifetime:?} is too short for a rotation: it must be at least {least} times --propagation-time, {:?}",
                    propagation * least
                );
            }
        }
        Ok(lifetimes)
    }

    /// How certificates are kept in the Secret, if there is one.
    pub(super) fn settings(&self, home: ServiceRef, client_ca: Option<PathBuf>) -> anyhow::Result<Option<Settings>> {
        let lifetimes = self.lifetimes()?;
        Ok(self.tls_secret.clone().map(|secret| Settings { home, secret, lifetimes, client_ca }))
    }
}
