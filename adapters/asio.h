// A call of a Group as an asynchronous operation of asio, for any completion token: use_awaitable,
// use_future, a handler bound to a strand. The host brings asio.
#pragma once

#include <leasehold/adapters/call.h>

#include <asio/associated_executor.hpp>
#include <asio/async_result.hpp>
#include <asio/executor_work_guard.hpp>
#include <asio/post.hpp>
#include <asio/system_executor.hpp>
#include <memory>
#include <type_traits>
#include <utility>

namespace leasehold::adapters {

/// Begins the call; its answer comes through the token's executor (else the system's), which has
/// work until then. Its signature is void(Answer): what failed stands in the answer.
template <class Answer, class Token>
auto async(Call<Answer> call, Token&& token) {
  const auto initiate = [](auto handler, Call<Answer> begun) {
    auto executor = asio::get_associated_executor(handler, asio::system_executor());
    auto work = asio::make_work_guard(executor);
    // A completion may be copied, which a handler need not allow.
    auto waiting = std::make_shared<std::decay_t<decltype(handler)>>(std::move(handler));
    std::move(begun).begin([waiting, work, executor](Answer given) {
      asio::post(executor, [waiting, given = std::move(given)]() mutable {
        std::move (*waiting)(std::move(given));
      });
    });
  };
  return asio::async_initiate<Token, void(Answer)>(initiate, token, std::move(call));
}

}  // namespace leasehold::adapters
