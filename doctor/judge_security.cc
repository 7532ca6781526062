// Certificates and keys.
#include <leasehold/doctor/judge.h>
#include <leasehold/doctor/make_finding.h>
#include <leasehold/tls/name.h>

#include <fmt/format.h>

#include <string>
#include <variant>

namespace leasehold::doctor {
namespace {

constexpr std::int64_t kDaysSoon = 30;

std::string make_new(const server::ServeSettings& settings) {
  return fmt::format(
      "leasehold cert node {} makes a new one; then kill -HUP the process, or "
      "LEASEHOLD RELOAD",
      settings.node.id.value());
}

Finding judge_dates(const server::ServeSettings& settings, const CertificateFacts& facts) {
  const char* const kName = "certificates";
  const bool authority = facts.name == "--tls-ca";
  if (!facts.problem.empty()) {
    return fault(kName, fmt::format("{}: {}", facts.name, facts.problem),
                 authority ? "leasehold cert init makes an authority" : make_new(settings));
  }
  const std::string named = fmt::format("{} {}", facts.name, facts.path);
  const std::string cure =
      authority ? "leasehold cert init makes a new authority; docs/operations.md says how a group "
                  "moves to it"
                : make_new(settings);
  if (facts.days_left < 0) {
    return fault(kName, fmt::format("{} ended on {} UTC: nobody believes it", named, facts.ends),
                 cure);
  }
  const std::string found = fmt::format("{} is good until {} UTC", named, facts.ends);
  if (facts.days_left < kDaysSoon) {
    return warning(kName, fmt::format("{}, for {} more days", found, facts.days_left), cure);
  }
  return fine(kName, found);
}

/// Whether the certificate is this node's.
Finding judge_name(const server::ServeSettings& settings, const CertificateFacts& facts) {
  const char* const kName = "certificates";
  const auto parsed = tls::parse_uri(facts.says);
  const auto* node = parsed ? std::get_if<tls::NodeName>(&parsed.value()) : nullptr;
  if (node == nullptr) {
    return fault(kName,
                 fmt::format("{} names no node ({}): no peer believes it", facts.path,
                             facts.says.empty() ? "no name of ours" : facts.says),
                 make_new(settings));
  }
  if (node->id != settings.node.id.value() || node->cluster != settings.node.cluster) {
    return fault(
        kName,
        fmt::format("{} is for node {} of cluster '{}', and this is node {} of '{}'", facts.path,
                    node->id, node->cluster, settings.node.id.value(), settings.node.cluster),
        make_new(settings));
  }
  return fine(kName, fmt::format("{} is this node's", facts.path));
}

/// Without any proof: only for peers of this machine.
Finding judge_plain(const server::ServeSettings& settings, const Facts& facts) {
  const char* const kName = "peer-protection";
  const net::PeerSecurity& security = settings.node.peer_security;
  if (security.dial != net::Protection::plain) {
    return fine(kName, fmt::format("peers prove themselves: {}", net::name_of(security.dial)));
  }
  const char* const kCure =
      "leasehold cert key makes a key for --peer-key, the same on every node; or certificates: "
      "leasehold cert node";
  for (const AddressFacts& one : facts.addresses) {
    if (!one.own || !one.peer || one.loopback || one.reach == Reach::no_such_name) continue;
    const std::string found =
        fmt::format("peers prove nothing, and {} is beyond loopback", one.address);
    if (!security.plain_beyond_loopback)
      return fault(kName, found + ": serve does not start", kCure);
    return warning(kName, found + ": a stranger that reaches it owns the group", kCure);
  }
  return fine(kName, "peers prove nothing, and are all on this machine");
}

}  // namespace

Findings judge_security(const server::ServeSettings& settings, const Facts& facts) {
  const char* const kName = "certificates";
  const SecurityFacts& security = facts.security;
  Findings all = {judge_plain(settings, facts)};
  const char* const kCure =
      "repair the file as it says, or make others: leasehold cert node, leasehold cert key";
  if (security.peers) {
    const bool of_key = settings.node.peer_security.accepts(net::Protection::key) &&
                        (!security.clients || security.clients->message != security.peers->message);
    all.push_back(fault(of_key ? "peer-key" : kName, security.peers->message, kCure));
  }
  if (security.clients &&
      (!security.peers || security.peers->message != security.clients->message)) {
    all.push_back(fault(kName, security.clients->message, kCure));
  }
  for (const CertificateFacts& one : security.certificates) {
    all.push_back(judge_dates(settings, one));
    if (one.name == "--tls-cert" && one.problem.empty()) all.push_back(judge_name(settings, one));
  }
  if (security.chain && security.chain->code == ErrorCode::invalid_argument) {
    all.push_back(fault(kName, security.chain->message,
                        "--tls-ca with the authority that certified it (all of them, while one "
                        "replaces another), or make it again: leasehold cert node"));
  }
  return all;
}

}  // namespace leasehold::doctor
