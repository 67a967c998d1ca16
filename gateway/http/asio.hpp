// Asio with one concrete executor: the socket, timer and token types of this project.
#pragma once

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>

#include "gateway/http/types.hpp"

namespace fixpoint {

using boost::system::error_code;
using tcp = net::ip::tcp;
using Socket = net::basic_stream_socket<tcp, Executor>;
using Acceptor = net::basic_socket_acceptor<tcp, Executor>;
using Clock = std::chrono::steady_clock;
using Timer = net::basic_waitable_timer<Clock, net::wait_traits<Clock>, Executor>;

// co_await socket.async_read_some(buffer, net::redirect_error(use_task, ec))
inline constexpr net::use_awaitable_t<Executor> use_task{};

}  // namespace fixpoint
