// What a running node says of itself, in numbers and in words.
#pragma once

#include <leasehold/net/tcp_transport.h>
#include <leasehold/node/node.h>
#include <leasehold/replica/driver.h>
#include <leasehold/replica/observer.h>

#include <string>

namespace leasehold::node {

/// Fills what NodeStatus says of the group's state, but for the members. `failed`: it has no lease.
void describe(const replica::Driver& driver, lease::HolderInstant now, bool failed,
              NodeStatus& status);

/// A connection that was refused, here or there, and why.
std::string text_of(const net::Rejection& rejection);

/// What a person has to know about the log, once each time.
class LogNotices {
 public:
  void look(const replica::Driver& driver, const std::string& data_dir,
            replica::Observer& observer);

 private:
  bool told_full_ = false;
  bool told_never_cut_ = false;
};

}  // namespace leasehold::node
