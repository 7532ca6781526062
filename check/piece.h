// Makes a history that has no order small, for people.
#pragma once

#include <leasehold/check/history.h>

#include <functional>
#include <vector>

namespace leasehold::check {

/// Whether operations of one key certainly have no order.
using HasNoOrder = std::function<bool(const std::vector<Operation>&)>;

/// The operations of `all`, which belong to one key and have no order, that are needed to see it.
/// Leaves out only operations without which any order would still be an order: so what remains is a
/// fault of the history, and not caused by the leaving out. In the order of the calls.
std::vector<Operation> smallest_piece(std::vector<Operation> all, const HasNoOrder& has_no_order);

}  // namespace leasehold::check
