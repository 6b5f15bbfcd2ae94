//! How much a group has used over hours and days: quantiles of its RAM by time, and requests and limits for them.
//!
//! Seconds are counted in classes of sizes that grow by a fiftieth. What is a day old counts half, as in Kubernetes'
//! Vertical Pod Autoscaler, so that a service that has changed is believed.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A class ends at this many times its begin.
const CLASS: f64 = 1.02;
const HOUR_S: f64 = 3600.0;

/// What a group used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct History {
    /// Seconds in each class, the older ones less.
    seconds: BTreeMap<i32, f64>,
    /// Seconds watched in all.
    pub watched: f64,
    /// The most that was charged at a look, bytes.
    pub peak: u64,
    last: Option<f64>,
    aged: f64,
}

impl History {
    /// At this time (seconds since 1970) so many bytes are charged. A gap without a look counts for nothing.
    pub fn add(&mut self, at: f64, bytes: u64, gap_max: f64) {
        let seconds = self.last.map_or(0.0, |last| at - last);
        self.last = Some(at);
        self.peak = self.peak.max(bytes);
        if !(0.0..=gap_max).contains(&seconds) {
            return;
        }
        self.watched += seconds;
        *self.seconds.entry((bytes.max(1) as f64).log(CLASS).ceil() as i32).or_default() += seconds;
        if self.watched - self.aged > HOUR_S {
            self.aged = self.watched;
            self.seconds.values_mut().for_each(|seconds| *seconds *= 0.5f64.powf(1.0 / 24.0));
            self.seconds.retain(|_, seconds| *seconds > 1e-3);
        }
    }

    /// Bytes that were enough for this part of the time; `None`: nothing was watched.
    pub fn quantile(&self, part: f64) -> Option<u64> {
        let all: f64 = self.seconds.values().sum();
        let mut sum = 0.0;
        let class = self.seconds.iter().find(|(_, seconds)| {
            sum += **seconds;
            sum >= part * all * (1.0 - 1e-9)
        });
        class.map(|(class, _)| (CLASS.powi(*class) as u64).min(self.peak))
    }

    /// What is to be requested for it; `None`: nothing was watched. `charged`: the most that the kernel has charged.
    pub fn suggested(&self, name: &str, charged: u64) -> Option<Suggested> {
        let [p50, p95, p99] = [0.5, 0.95, 0.99].map(|part| self.quantile(part));
        let (p50_bytes, p95_bytes, p99_bytes) = (p50?, p95?, p99?);
        let peak_bytes = self.peak.max(charged);
        let mi = |bytes: u64| format!("{}Mi", bytes.div_ceil(1 << 20));
        let (request, limit) = (mi(p95_bytes), mi(peak_bytes + peak_bytes / 10));
        let quantity = |memory: &str| Quantity { memory: memory.into() };
        let container = ContainerRecommendation {
            container_name: name.rsplit('/').next().unwrap_or(name).into(),
            lower_bound: quantity(&mi(p50_bytes)),
            target: quantity(&request),
            upper_bound: quantity(&mi(p99_bytes)),
        };
        Some(Suggested {
            schema_version: crate::SCHEMA_VERSION,
            version: env!("CARGO_PKG_VERSION"),
            name: name.into(),
            watched_seconds: self.watched,
            p50_bytes,
            p95_bytes,
            p99_bytes,
            peak_bytes,
            resources: Resources { requests: quantity(&request), limits: quantity(&limit) },
            recommendation: Recommendation { container_recommendations: vec![container] },
            recommended: Krr {
                requests: KrrMemory { memory: KrrValue { value: p95_bytes } },
                limits: KrrMemory { memory: KrrValue { value: peak_bytes + peak_bytes / 10 } },
            },
        })
    }
}

/// Requests and limits from a history.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Suggested {
    /// Version of this object's form.
    pub schema_version: u32,
    /// Version of coldframe.
    pub version: &'static str,
    /// The group's name.
    pub name: String,
    /// How long it was watched.
    pub watched_seconds: f64,
    /// RAM that was enough for half of the time.
    pub p50_bytes: u64,
    /// For 95 % of the time.
    pub p95_bytes: u64,
    /// For 99 % of the time.
    pub p99_bytes: u64,
    /// The most that was charged.
    pub peak_bytes: u64,
    /// As a container's specification has it.
    pub resources: Resources,
    /// As a VerticalPodAutoscaler's status has it.
    pub recommendation: Recommendation,
    /// As krr's JSON has it.
    pub recommended: Krr,
}

/// Requests and limits of a container.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Resources {
    /// What is enough for 95 % of the time.
    pub requests: Quantity,
    /// The peak and a tenth more.
    pub limits: Quantity,
}

/// Memory as Kubernetes writes it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Quantity {
    /// As 64Mi.
    pub memory: String,
}

/// The form of the Vertical Pod Autoscaler.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Recommendation {
    /// One for each container.
    pub container_recommendations: Vec<ContainerRecommendation>,
}

/// A container's.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContainerRecommendation {
    /// The name that was given.
    pub container_name: String,
    /// p50.
    pub lower_bound: Quantity,
    /// p95.
    pub target: Quantity,
    /// p99.
    pub upper_bound: Quantity,
}

/// The form of krr.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Krr {
    /// p95.
    pub requests: KrrMemory,
    /// The peak and a tenth more.
    pub limits: KrrMemory,
}

/// Memory in it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct KrrMemory {
    /// Its value.
    pub memory: KrrValue,
}

/// A value in it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct KrrValue {
    /// Bytes.
    pub value: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn quantiles_are_those_of_time_and_gaps_count_for_nothing() {
        let mut history = History::default();
        for i in 0..1000 {
            // 10 MiB, and 100 for 3 % of the time.
            history.add(f64::from(i), if i % 100 < 3 { 100 * MIB } else { 10 * MIB }, 5.0);
        }
        history.add(1e6, 50 * MIB, 5.0);
        let near = |part: f64, mib: u64| {
            let found = history.quantile(part).unwrap() as f64 / (mib * MIB) as f64;
            assert!((1.0..1.03).contains(&found), "{part} {found}");
        };
        near(0.5, 10);
        near(0.95, 10);
        near(0.99, 100);
        assert_eq!((history.peak, history.watched), (100 * MIB, 999.0));
        let suggested = history.suggested("shop/web", 200 * MIB).unwrap();
        assert_eq!((&*suggested.resources.requests.memory, &*suggested.resources.limits.memory), ("11Mi", "220Mi"));
        assert_eq!(suggested.recommendation.container_recommendations[0].container_name, "web");
        assert!(History::default().suggested("web", 1).is_none());
    }

    #[test]
    fn days_later_a_service_that_has_changed_is_believed() {
        let mut history = History::default();
        let mut hours = |range: std::ops::Range<u32>, mib: u64| {
            range.for_each(|minute| history.add(f64::from(minute) * 60.0, mib * MIB, 60.0));
            history.quantile(0.5).unwrap() / MIB
        };
        assert_eq!(hours(0..1440, 40), 40);
        assert_eq!(hours(1440..2880, 20), 20);
        assert!(history.quantile(0.99).unwrap() >= 40 * MIB);
    }
}
