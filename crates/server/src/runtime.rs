//! The asynchronous runtimes of the `http` and `timers` threads.

use std::io;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};

/// Maximum number of threads that resolve host names. Further names wait.
const RESOLVERS_MAX: usize = 4;
/// Lifetime of an idle resolver: longer than any node runs.
const RESOLVER_IDLE_MAX: Duration = Duration::from_secs(10 * 365 * 86_400);

/// Builds a runtime on one thread, with one thread beside it that resolves names and never ends: the runtime panics
/// if it needs such a thread and the system has no more of them.
pub(crate) fn runtime() -> io::Result<Runtime> {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(RESOLVERS_MAX)
        .thread_keep_alive(RESOLVER_IDLE_MAX)
        .build()?;
    drop(runtime.spawn_blocking(|| {}));
    Ok(runtime)
}
