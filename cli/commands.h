// The commands of the program. Each registers its flags and returns what it does (parser.h); the
// table of main.cc names them.
#pragma once

#include <leasehold/cli/parser.h>

namespace leasehold::cli {

// Each returns an exit status of kExitStatuses (manual.h).
Run add_advise(Flags& flags);
Run add_backup(Flags& flags);
Run add_cert(Flags& flags);
Run add_del(Flags& flags);
Run add_demo(Flags& flags);
Run add_doctor(Flags& flags);
Run add_elect(Flags& flags);
Run add_get(Flags& flags);
Run add_lease(Flags& flags);
Run add_lock(Flags& flags);
Run add_member(Flags& flags);
Run add_pool(Flags& flags);
Run add_put(Flags& flags);
Run add_rebuild(Flags& flags);
Run add_recover(Flags& flags);
Run add_register(Flags& flags);
Run add_restore(Flags& flags);
Run add_serve(Flags& flags);
Run add_snapshot(Flags& flags);
Run add_status(Flags& flags);
Run add_settings(Flags& flags);
Run add_slots(Flags& flags);
Run add_trace(Flags& flags);
Run add_transfer(Flags& flags);
Run add_watch(Flags& flags);

}  // namespace leasehold::cli
