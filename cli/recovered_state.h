// What leasehold recover reads of a member's directory, and the file that it makes of it.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/node/node_recovery.h>

#include <string>

namespace leasehold::cli {

/// The report of the stopped member in `dir`, its store included. Errors: those of
/// node::StoppedLog::open(). A store that cannot be used is no error: the report says why.
Result<node::Survivor> look_at_survivor(const std::string& dir);

/// Writes the state at the end of `log` to the new file `to`, in the form of a backup
/// (docs/formats/backup.md), with the gap of the plan behind it. The node's own state in `dir`
/// stays as it is. After an interruption it may be called again. Returns what the file holds, in
/// words. Errors: those of the store, of the log and of write_backup_file().
Result<std::string> write_recovered_state(node::StoppedLog& log, const std::string& dir,
                                          const node::RecoveryPlan& plan, const std::string& to);

}  // namespace leasehold::cli
