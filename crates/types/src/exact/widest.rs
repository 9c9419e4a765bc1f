//! Loops compiled twice: for any processor, and for the widest registers of this one.

/// Runs a loop as it is compiled for the widest registers that there are.
#[macro_export]
#[doc(hidden)]
macro_rules! widest {
    ($name:ident, $loop:ident, [$($bound:tt)*], ($($arg:ident: $type:ty),*) -> $result:ty) => {
        #[inline]
        fn $name<$($bound)*>($($arg: $type),*) -> $result {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2")]
                fn avx2<$($bound)*>($($arg: $type),*) -> $result {
                    $loop($($arg),*)
                }
                if is_x86_feature_detected!("avx2") {
                    // SAFETY: the feature was just detected.
                    return unsafe { avx2($($arg),*) };
                }
            }
            $loop($($arg),*)
        }
    };
}
