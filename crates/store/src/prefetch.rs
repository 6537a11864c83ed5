//! Prefetches a cache line before it is needed. Never reads, so any address is allowed.
#![expect(unsafe_code, reason = "the prefetch instruction is only offered as an unsafe intrinsic")]

#[inline(always)]
pub fn prefetch<T>(address: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch is a hint; it dereferences nothing and faults on no address.
    unsafe {
        core::arch::x86_64::_mm_prefetch(address.cast::<i8>(), core::arch::x86_64::_MM_HINT_T0);
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}
