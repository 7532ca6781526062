#include <leasehold/base/assert.h>
#include <leasehold/server/front/key_times.h>
#include <leasehold/server/front/people_time.h>
#include <leasehold/server/front/replies.h>
#include <leasehold/server/front/words.h>

#include <fmt/format.h>

#include <iterator>
#include <variant>

namespace leasehold::server {
namespace {

void append_integer_as(std::string& out, std::int64_t value, ReplyForm form) {
  switch (form) {
    case ReplyForm::type: return append_simple(out, value > 0 ? "string" : "none");
    case ReplyForm::plain:
    case ReplyForm::seconds_left:
    case ReplyForm::milliseconds_left:
    case ReplyForm::end_seconds:
    case ReplyForm::end_milliseconds:
    case ReplyForm::held_milliseconds:
    case ReplyForm::lease_info:
    case ReplyForm::encoding:
    case ReplyForm::count_one:
    case ReplyForm::no_idle_time:
    case ReplyForm::no_frequency:
    case ReplyForm::common_part:
    case ReplyForm::how_many_if_done:
    case ReplyForm::any_done:
    case ReplyForm::deleted_or_minus_one:
    case ReplyForm::transaction: return append_integer(out, value);
  }
  LEASEHOLD_UNREACHABLE();
}

bool tells_time(ReplyForm form) {
  return form >= ReplyForm::seconds_left && form <= ReplyForm::held_milliseconds;
}

bool is_of_script(ReplyForm form) {
  return form >= ReplyForm::how_many_if_done && form <= ReplyForm::deleted_or_minus_one;
}

/// `array`: of the two operations that a script is.
void append_of_script(std::string& out, const kv::ArrayReply& array, Protocol protocol,
                      ReplyForm form) {
  std::int64_t numbers[2] = {0, 0};
  for (std::size_t i = 0; i < 2 && i < array.items.size(); ++i) {
    const Result<kv::Reply> item = kv::decode_reply(array.items[i]);
    if (!item) continue;
    // It says that nothing was done, and what else was done it does not undo.
    if (std::holds_alternative<kv::ErrorReply>(item.value())) {
      return append_kv_reply(out, item.value(), protocol, ReplyForm::plain, {}, nullptr);
    }
    const auto* integer = std::get_if<kv::Integer>(&item.value());
    numbers[i] = integer != nullptr ? integer->value : std::holds_alternative<kv::Ok>(item.value());
  }
  if (form == ReplyForm::any_done) {
    return append_integer(out, numbers[0] != 0 || numbers[1] != 0 ? 1 : 0);
  }
  const std::int64_t otherwise = form == ReplyForm::deleted_or_minus_one ? -1 : 0;
  append_integer(out, numbers[0] != 0 ? numbers[1] : otherwise);
}

void append_time(std::string& out, const kv::Reply& reply, ReplyForm form,
                 kv::LeaseKeeper* keeper) {
  const auto left = milliseconds_left(reply, keeper);
  if (!left) return append_integer(out, form == ReplyForm::held_milliseconds ? -3 : -2);
  if (*left < 0) return append_integer(out, -1);
  const bool end = form == ReplyForm::end_seconds || form == ReplyForm::end_milliseconds;
  std::int64_t time = *left;
  if (end) time = said_end(reply).value_or(*left + wall_now() / std::chrono::milliseconds(1));
  const bool seconds = form == ReplyForm::seconds_left || form == ReplyForm::end_seconds;
  append_integer(out, seconds ? (time + 500) / 1000 : time);
}

/// Two more items: how much of its time to live is left, and when it was renewed by the wall clock.
/// Nulls at a node that does not lead: the leader renews without a message to the others. During
/// its lock delay what is left is that of the delay, and nobody has renewed it.
void append_lease_times(std::string& out, const kv::ArrayReply& info, Protocol protocol,
                        kv::LeaseKeeper* keeper) {
  const auto left = lease_left(info, keeper);
  if (!left) {
    append_null(out, protocol);
    return append_null(out, protocol);
  }
  append_integer(out, left->left_ms);
  if (!left->since_renewal_ms) return append_null(out, protocol);
  append_integer(out, wall_now() / std::chrono::milliseconds(1) - *left->since_renewal_ms);
}

bool is_about_object(ReplyForm form) {
  return form >= ReplyForm::encoding && form <= ReplyForm::no_frequency;
}

/// As Redis stores what SET writes.
std::string_view encoding_of(std::string_view value) {
  constexpr std::size_t kLongestInteger = 20;
  constexpr std::size_t kLongestEmbedded = 44;
  if (value.size() <= kLongestInteger) {
    const auto number = parse_integer(value);
    if (number && std::to_string(*number) == value) return "int";
  }
  return value.size() <= kLongestEmbedded ? "embstr" : "raw";
}

void append_about_object(std::string& out, const kv::Reply& reply, Protocol protocol,
                         ReplyForm form) {
  const auto* const count = std::get_if<kv::Integer>(&reply);
  const auto* const value = std::get_if<kv::ValueReply>(&reply);
  if (value == nullptr && (count == nullptr || count->value == 0)) {
    append_null(out, protocol);
  } else if (value != nullptr) {
    append_bulk(out, encoding_of(value->value.view()));
  } else if (form == ReplyForm::count_one) {
    append_integer(out, 1);
  } else if (form == ReplyForm::no_idle_time) {
    append_error(out, "ERR idle time is not tracked here: no key is evicted to make room");
  } else {
    append_error(
        out,
        "ERR An LFU maxmemory policy is not selected, access frequency not tracked: no key "
        "is evicted here to make room");
  }
}

/// Two items: the runs, and the length.
void append_common_part(std::string& out, const kv::ArrayReply& array, Protocol protocol) {
  static constexpr std::string_view kNames[] = {"matches", "len"};
  append_map(out, array.items.size(), protocol);
  for (std::size_t i = 0; i < array.items.size() && i < std::size(kNames); ++i) {
    append_bulk(out, kNames[i]);
    append_encoded_reply(out, array.items[i], protocol, ReplyForm::plain, {}, nullptr);
  }
}

std::string first_word(kv::ErrorKind kind) {
  switch (kind) {
    case kv::ErrorKind::store_failed: return "UNKNOWNOUTCOME ";
    case kv::ErrorKind::no_session: return "NOSESSION ";
    case kv::ErrorKind::lease_taken: return "LEASETAKEN ";
    case kv::ErrorKind::no_lease: return "NOLEASE ";
    case kv::ErrorKind::fenced: return "FENCED ";
    case kv::ErrorKind::key_exists: return "KEYEXISTS ";
    case kv::ErrorKind::not_owner: return "NOPERM ";
    case kv::ErrorKind::moved: return "TRYAGAIN ";
    case kv::ErrorKind::slot_left: return "CROSSSLOT ";
    default: return "ERR ";
  }
}

/// What EXEC returns: the results of the operations, and between them what was answered here.
void append_of_transaction(std::string& out, const kv::ArrayReply& results, Protocol protocol,
                           const TransactionParts& parts, kv::LeaseKeeper* keeper) {
  // If this number was executed before for another transaction, the results are those of that one.
  const bool fits = results.items.size() + parts.here.size() == parts.specs.size();
  append_array(out, fits ? parts.specs.size() : results.items.size());
  std::size_t place = 0;
  for (const Bytes& item : results.items) {
    for (; fits && parts.here.count(place) != 0; ++place) out += parts.here.at(place);
    const ReplyForm own = place < parts.specs.size() ? parts.specs[place]->form : ReplyForm::plain;
    append_encoded_reply(out, item, protocol, own, {}, keeper);
    ++place;
  }
  for (; fits && place < parts.specs.size(); ++place) out += parts.here.at(place);
}

}  // namespace

void append_kv_reply(std::string& out, const kv::Reply& reply, Protocol protocol, ReplyForm form,
                     const TransactionParts& parts, kv::LeaseKeeper* keeper) {
  const auto* error = std::get_if<kv::ErrorReply>(&reply);
  if (error == nullptr && tells_time(form)) return append_time(out, reply, form, keeper);
  if (error == nullptr && is_about_object(form)) {
    return append_about_object(out, reply, protocol, form);
  }
  if (std::holds_alternative<kv::Ok>(reply)) {
    append_simple(out, "OK");
  } else if (std::holds_alternative<kv::Nil>(reply)) {
    form == ReplyForm::transaction ? append_null_array(out, protocol) : append_null(out, protocol);
  } else if (const auto* integer = std::get_if<kv::Integer>(&reply)) {
    append_integer_as(out, integer->value, form);
  } else if (const auto* value = std::get_if<kv::ValueReply>(&reply)) {
    append_bulk(out, value->value.view());
  } else if (const auto* array = std::get_if<kv::ArrayReply>(&reply)) {
    if (is_of_script(form)) return append_of_script(out, *array, protocol, form);
    if (form == ReplyForm::transaction) {
      return append_of_transaction(out, *array, protocol, parts, keeper);
    }
    if (form == ReplyForm::common_part) return append_common_part(out, *array, protocol);
    const bool times = form == ReplyForm::lease_info;
    append_array(out, array->items.size() + (times ? 2 : 0));
    for (const Bytes& item : array->items) {
      append_encoded_reply(out, item, protocol, ReplyForm::plain, {}, keeper);
    }
    if (times) append_lease_times(out, *array, protocol, keeper);
  } else if (error != nullptr) {
    append_error(out, first_word(error->kind) + error->text);
  }
}

std::string witness_refusal(const ServerState& state) {
  const raft::NodeId member(state.full_member.load(std::memory_order_relaxed));
  std::string ask = "a member that is not a witness";
  if (member != raft::kNobody) {
    ask = fmt::format("node {}", member.value());
    const auto at = state.options.client_addresses.find(member);
    if (at != state.options.client_addresses.end()) ask += " at " + at->second;
  }
  return "WITNESS this node is a witness and keeps no state; the command was not executed, ask " +
         ask;
}

void append_not_executed(std::string& out, bool overloaded, raft::NodeId leader) {
  if (overloaded) {
    append_error(out, "TRYAGAIN too many commands are waiting; this one was not executed");
  } else if (leader == raft::kNobody) {
    append_error(out, "NOLEADER no leader is known; the command was not executed, try again");
  } else {
    append_error(out,
                 "TRYAGAIN the leader changed, or this node leaves; the command was not executed");
  }
}

void append_dropped(std::string& out, const replica::ProposeResult& result) {
  if (result.disk_full_at == raft::kNobody) {
    return append_not_executed(out, result.overloaded, result.leader);
  }
  append_error(out,
               fmt::format("TRYAGAIN the disk of node {} is full; the command was not executed",
                           result.disk_full_at.value()));
}

void append_encoded_reply(std::string& out, const Bytes& bytes, Protocol protocol, ReplyForm form,
                          const TransactionParts& parts, kv::LeaseKeeper* keeper) {
  const Result<kv::Reply> decoded = kv::decode_reply(bytes);
  if (decoded) return append_kv_reply(out, decoded.value(), protocol, form, parts, keeper);
  append_error(out, "ERR the command was executed, but its result cannot be read: " +
                        decoded.error().message);
}

}  // namespace leasehold::server
