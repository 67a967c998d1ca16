// Asio with one concrete executor, as the connections to Redis use it.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>

namespace fixpoint::redis {

namespace net = boost::asio;
using boost::system::error_code;
using tcp = net::ip::tcp;
using Executor = net::io_context::executor_type;
template <class T>
using Task = net::awaitable<T, Executor>;
using Socket = net::basic_stream_socket<tcp, Executor>;
using TlsStream = net::ssl::stream<Socket&>;
using Clock = std::chrono::steady_clock;
using Timer = net::basic_waitable_timer<Clock, net::wait_traits<Clock>, Executor>;

// co_await socket.async_read_some(buffer, net::redirect_error(use_task, ec))
inline constexpr net::use_awaitable_t<Executor> use_task{};

}  // namespace fixpoint::redis
