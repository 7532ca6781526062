// Tells the host's functions what a node reports.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/c/leasehold.h>
#include <leasehold/replica/observer.h>

#include <string>

namespace leasehold::c {

class Observer final : public replica::Observer {
 public:
  /// A copy of `given`, which may be null. Errors: invalid_argument.
  Result<void> take(const leasehold_observer* given);

  void on_change(const replica::Change& change) override;
  void on_notice(const std::string& text) override;
  void on_failure(const Error& error);

 private:
  leasehold_observer functions_ = {};
};

}  // namespace leasehold::c
