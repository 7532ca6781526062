#include <leasehold/server/admin/admin_routes.h>
#include <leasehold/server/admin/metrics.h>
#include <leasehold/server/admin/process_figures.h>
#include <leasehold/server/admin/readiness.h>
#include <leasehold/server/admin/status_page.h>
#include <leasehold/server/admin/status_report.h>
#include <leasehold/server/front/words.h>

#include <asio/ip/address.hpp>

#include <algorithm>

namespace leasehold::server {
namespace {

constexpr const char* kPlain = "text/plain; charset=utf-8";
constexpr const char* kJson = "application/json";
constexpr const char* kMetricsType = "text/plain; version=0.0.4; charset=utf-8";
constexpr const char* kPaths =
    "leasehold: / (a page), /status.json, /metrics (Prometheus), /healthz (the process is alive), "
    "/readyz (it serves)\n";

/// "localhost" of "localhost:9100", "::1" of "[::1]:9100".
std::string_view name_in(std::string_view host) {
  if (!host.empty() && host.front() == '[') return host.substr(1, host.find(']') - 1);
  return host.substr(0, host.rfind(':'));
}

}  // namespace

bool AdminRoutes::is_foreign(std::string_view host) const {
  // HTTP/1.0 has none, and no browser leaves it out.
  if (!loopback_ || host.empty()) return false;
  const std::string name = lowered(name_in(host));
  if (name == "localhost" || name == lowered(name_in(options_.listen))) return false;
  asio::error_code error;
  asio::ip::make_address(name, error);
  return static_cast<bool>(error);
}

HttpAnswer AdminRoutes::metrics(const HttpRequest& request, const Look& look) const {
  const auto asked = request.query.find("group");
  const ProcessFigures process = process_figures(options_.data_dir);
  MetricsSource source{look,    groups_,         state_,         process,
                       counts_, sources_.events, sources_.syncs, {}};
  if (look.answered) {
    source.shown =
        shown_groups(asked == request.query.end() ? "" : asked->second, groups_.all().size());
  }
  return {200, kMetricsType, metrics_page(source)};
}

/// A page of another node's admin port.
bool AdminRoutes::may_read(const std::string& origin) const {
  return std::any_of(options_.addresses.begin(), options_.addresses.end(), [&](const auto& known) {
    return origin == "http://" + known.second || origin == "https://" + known.second;
  });
}

HttpAnswer AdminRoutes::status(const HttpRequest& request, const Look& look) const {
  std::size_t selected = 0;
  if (const auto asked = request.query.find("group"); asked != request.query.end()) {
    const auto shown = shown_groups(asked->second, groups_.all().size());
    if (shown.size() != 1) {
      return {404, kPlain, "group= takes the number of one group of this node\n"};
    }
    selected = shown.front();
  }
  const ReportSource source{look,           groups_,           state_, sources_.events,
                            sources_.syncs, options_.addresses};
  HttpAnswer answer{200, kJson, status_report(source, selected)};
  answer.headers.emplace_back("Vary", "Origin");
  if (may_read(request.origin)) {
    answer.headers.emplace_back("Access-Control-Allow-Origin", request.origin);
    // The certificate of a user, where one is asked for.
    answer.headers.emplace_back("Access-Control-Allow-Credentials", "true");
  }
  return answer;
}

HttpAnswer AdminRoutes::page() const {
  return {200,
          "text/html; charset=utf-8",
          kStatusPage,
          {{"Content-Security-Policy", page_policy(options_.addresses)},
           {"Referrer-Policy", "no-referrer"}}};
}

HttpAnswer AdminRoutes::answer(const HttpRequest& request, const Look& look) {
  ++counts_.requests;
  if (is_foreign(request.host)) {
    ++counts_.foreign;
    return {421, kPlain,
            "this port is for the machine that it is on: name it localhost, or by its address\n"};
  }
  if (request.path == "/metrics") return metrics(request, look);
  if (request.path == "/healthz") {
    return {look.answered ? 200 : 503, kJson,
            look.answered ? "{\"alive\":true}\n" : "{\"alive\":false}\n"};
  }
  if (request.path == "/readyz") {
    const auto conditions = ready_conditions(look, groups_, state_);
    return {is_ready(conditions) ? 200 : 503, kJson, ready_json(conditions)};
  }
  if (request.path == "/status.json") return status(request, look);
  if (request.path == "/") return page();
  return {404, kPlain, kPaths};
}

}  // namespace leasehold::server
