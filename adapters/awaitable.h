// A call of a Group in a coroutine of any kind: co_await propose(group, command, 2s).
#pragma once

#include <leasehold/adapters/call.h>

#include <coroutine>
#include <functional>
#include <optional>
#include <utility>

namespace leasehold::adapters {

/// Runs a task later, on a thread of the host; it is called on a thread of the node.
using Post = std::function<void(std::function<void()>)>;

/// What co_await waits for. It stays where it is until the call has ended, as a part of the
/// coroutine does: a coroutine that is destroyed while it waits would leave the call's completion
/// without it.
template <class Answer>
class Awaiter {
 public:
  /// Without `post` the coroutine goes on where the call completes: on a thread of the node. Then
  /// it must be quick up to its next suspension, as a completion.
  explicit Awaiter(Call<Answer> call, Post post = nullptr)
      : call_(std::move(call)), post_(std::move(post)) {}

  bool await_ready() const noexcept { return false; }
  /// The call may complete before begin() returns, on another thread too, and the coroutine may
  /// end: nothing of this is used after that.
  void await_suspend(std::coroutine_handle<> waiting) {
    std::move(call_).begin([this, waiting, post = std::move(post_)](Answer given) {
      answer_.emplace(std::move(given));
      if (post == nullptr) {
        waiting.resume();
      } else {
        post([waiting] { waiting.resume(); });
      }
    });
  }
  Answer await_resume() { return *std::move(answer_); }

 private:
  Call<Answer> call_;
  Post post_;
  std::optional<Answer> answer_;
};

template <class Answer>
Awaiter<Answer> operator co_await(Call<Answer> call) {
  return Awaiter<Answer>(std::move(call));
}

/// co_await resume_on(post, propose(...)): the coroutine goes on in a task of `post`.
template <class Answer>
Awaiter<Answer> resume_on(Post post, Call<Answer> call) {
  return Awaiter<Answer>(std::move(call), std::move(post));
}

}  // namespace leasehold::adapters
