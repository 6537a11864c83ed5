//! A fleet of real Redis servers behind real proxies: maps change under load, migrators and proxies
//! are killed on the way, and clients see what a single server would have shown them.
mod fleet; //        servers, proxies, and the command line
mod keys; //         keys of all types, and a check that they all still exist
mod load; //         clients that know what they must see
mod migration; //    maps change under load
mod into_cluster; // the servers are emptied into a cluster
mod operator; //     dry runs, status, check, refusals
