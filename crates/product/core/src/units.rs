//! Units as types. Integers only: the core runs where there is no floating point, and sums must not depend on their
//! order.

use core::iter::Sum;
use core::ops::{Add, AddAssign, Mul, Sub};

macro_rules! quantity {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
        pub struct $name(pub u64);

        impl $name {
            /// Zero.
            pub const ZERO: $name = $name(0);

            /// The difference, or zero where `other` is larger.
            #[inline]
            pub const fn saturating_sub(self, other: $name) -> $name {
                $name(self.0.saturating_sub(other.0))
            }
        }

        impl Add for $name {
            type Output = $name;
            #[inline]
            fn add(self, other: $name) -> $name {
                $name(self.0 + other.0)
            }
        }

        impl AddAssign for $name {
            #[inline]
            fn add_assign(&mut self, other: $name) {
                self.0 += other.0;
            }
        }

        impl Sub for $name {
            type Output = $name;
            #[inline]
            fn sub(self, other: $name) -> $name {
                $name(self.0 - other.0)
            }
        }

        impl Mul<u64> for $name {
            type Output = $name;
            #[inline]
            fn mul(self, times: u64) -> $name {
                $name(self.0 * times)
            }
        }

        impl Sum for $name {
            fn sum<I: Iterator<Item = $name>>(items: I) -> $name {
                items.fold($name::ZERO, Add::add)
            }
        }
    )*};
}

quantity! {
    /// Picoseconds: data sheets give a clock period of 2.5 ns. 2^64 ps are 213 days.
    Ps;
    /// Picojoules. 2^64 pJ are 18 MJ.
    Pj;
    /// Microwatts.
    MicroWatt;
    /// Bytes.
    Bytes;
    /// Frames examined by a search for a victim.
    Walk;
}

impl Ps {
    /// From nanoseconds.
    pub const fn from_ns(ns: u64) -> Ps {
        Ps(ns * 1_000)
    }

    /// From microseconds.
    pub const fn from_us(us: u64) -> Ps {
        Ps(us * 1_000_000)
    }
}
