#include <leasehold/server/admin/looks.h>
#include <leasehold/server/front/people_time.h>

#include <asio/post.hpp>

#include <utility>

namespace leasehold::server {

Looks::Looks(asio::io_context& io, const ServedGroups& groups)
    : io_(io), groups_(groups), patience_(io) {}

Looks::~Looks() {
  stop();
}

void Looks::stop() {
  if (!under_way_) return;
  const std::lock_guard lock(under_way_->mutex);
  under_way_->io = nullptr;
}

void Looks::ask(Done done) {
  if (newest_.answered && coarse_now() - newest_at_ < kReused) return done(newest_);
  waiting_.push_back(std::move(done));
  if (!std::exchange(waiting_for_time_, true)) {
    patience_.expires_after(kPatience);
    // An expiry that is already on its way is not cancelled any more.
    patience_.async_wait([this, wait = ++waits_](asio::error_code error) {
      if (error || wait != waits_ || !waiting_for_time_) return;
      waiting_for_time_ = false;
      answer({});
    });
  }
  // Threads that stand still are not asked a second time.
  if (!under_way_) begin();
}

void Looks::begin() {
  const auto under_way = std::make_shared<UnderWay>();
  under_way->io = &io_;
  under_way->missing = groups_.all().size();
  under_way->look.statuses.resize(under_way->missing);
  under_way_ = under_way;
  for (std::size_t i = 0; i < groups_.all().size(); ++i) {
    groups_.all()[i].group.status([this, under_way, i](node::NodeStatus status) {
      const std::lock_guard lock(under_way->mutex);
      under_way->look.statuses[i] = std::move(status);
      if (--under_way->missing > 0 || under_way->io == nullptr) return;
      asio::post(*under_way->io, [this] { ended(); });
    });
  }
}

void Looks::ended() {
  newest_ = std::move(std::exchange(under_way_, nullptr)->look);
  newest_.answered = true;
  newest_at_ = coarse_now();
  if (std::exchange(waiting_for_time_, false)) patience_.cancel();
  answer(newest_);
}

void Looks::answer(const Look& look) {
  // One of them may ask again.
  for (const Done& done : std::exchange(waiting_, {})) done(look);
}

}  // namespace leasehold::server
