// What the commands that move slots do. evaluate.cc calls it. Not for other rooms.
//
// A result is the reply; an error reply says that nothing was done. An error is the backend's.
#pragma once

#include <leasehold/kv/evaluate.h>
#include <leasehold/kv/reply.h>
#include <leasehold/kv/slot_commands.h>
#include <leasehold/kv/slots.h>

namespace leasehold::kv {

/// All that they need. `slots` is the backend's.
struct SlotDraft {
  Backend& backend;
  Slots& slots;
  Counters& counters;
};

Result<Reply> run(const BeginMove& begin, SlotDraft draft);
Result<Reply> run(const RetryMove& retry, SlotDraft draft);
Result<Reply> run(const CancelMove& cancel, SlotDraft draft);
Result<Reply> run(const FreezeMove& freeze, SlotDraft draft);
Result<Reply> run(const ExpectSlots& expect, SlotDraft draft);
Result<Reply> run(const ImportKeys& import, SlotDraft draft);
Result<Reply> run(const TakeSlots& take, SlotDraft draft);
Result<Reply> run(const LeaveSlots& leave, SlotDraft draft);
Result<Reply> run(const DropKeys& drop, SlotDraft draft);
Result<Reply> run(const ForgetSlots& forget, SlotDraft draft);

}  // namespace leasehold::kv
