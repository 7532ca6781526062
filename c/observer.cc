#include <leasehold/c/answers.h>
#include <leasehold/c/observer.h>

#include <variant>

namespace leasehold::c {
Result<void> Observer::take(const leasehold_observer* given) {
  if (given == nullptr) return {};
  if (given->size < sizeof(leasehold_observer)) {
    return Error{ErrorCode::invalid_argument,
                 "leasehold_observer.size is not sizeof(leasehold_observer)"};
  }
  functions_ = *given;
  return {};
}

void Observer::on_change(const replica::Change& change) {
  if (const auto* now = std::get_if<replica::LeadershipChange>(&change)) {
    if (functions_.leadership == nullptr) return;
    functions_.leadership(functions_.context, role_of(now->role), now->term.value(),
                          now->leader.value());
  } else if (const auto* held = std::get_if<replica::LeaseChange>(&change)) {
    if (functions_.lease == nullptr) return;
    functions_.lease(functions_.context, held->term.value(), held->held ? 1 : 0);
  }
}

void Observer::on_notice(const std::string& text) {
  if (functions_.notice != nullptr) functions_.notice(functions_.context, text.c_str());
}

void Observer::on_failure(const Error& error) {
  if (functions_.failed == nullptr) return;
  functions_.failed(functions_.context, status_of(error.code), error.message.c_str());
}

}  // namespace leasehold::c
