// LEASEHOLD SLOTS MOVE and CANCEL: commands for many groups, each proposed to the one that has the
// slots. Before that the node applies what was committed before: a move that its old state shows
// may have ended, and another node may have begun one.
#pragma once

#include <leasehold/server/front/session.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace leasehold::server {

/// Begins to move the slots, which are ascending, to a group: 0 is the first one. One that is there
/// or on its way there already stays as it is, so the same command may come again. `done` gets the
/// reply, once, on any thread.
void move_slots(const Session::Context& context, const std::vector<std::uint32_t>& slots,
                std::size_t to, std::function<void(std::string)> done);

/// Cancels the moves of these slots, each as a whole. Another attempt of a move that begins in
/// between is cancelled, too. `done` gets the reply, once, on any thread.
void cancel_moves(const Session::Context& context, const std::vector<std::uint32_t>& slots,
                  std::function<void(std::string)> done);

}  // namespace leasehold::server
