// A Redis Cluster of real processes.
#pragma once

#include <chrono>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/cache/redis/redis_server.hpp"

namespace fixpoint::test {

class RedisCluster {
 public:
  // The masters come first among the nodes.
  explicit RedisCluster(std::size_t masters = 3, std::size_t replicas_of_each = 0) {
    std::string create = "redis-cli --cluster create";
    for (std::size_t i = 0; i < masters * (1 + replicas_of_each); ++i) {
      const std::string bus = std::to_string(free_port());
      nodes_.push_back(std::make_unique<RedisServer>(std::vector<std::string>{
          "--cluster-enabled", "yes", "--cluster-port", bus, "--cluster-node-timeout", "1000",
          "--cluster-require-full-coverage", "no"}));
      create += " 127.0.0.1:" + std::to_string(nodes_.back()->port());
    }
    create += " --cluster-replicas " + std::to_string(replicas_of_each);
    create += " --cluster-yes >/dev/null";
    if (std::system(create.c_str()) != 0) throw std::runtime_error("cannot create the cluster");
    for (const auto& node : nodes_) {
      for (int i = 0; i < 1000 && !is_ok(*node); ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      }
    }
  }

  RedisServer& node(std::size_t i) { return *nodes_.at(i); }
  std::size_t size() const { return nodes_.size(); }
  std::string url() const { return nodes_.front()->url(); }

  // Until every replica has what its master has.
  void wait_for_replicas() const {
    for (const auto& node : nodes_) {
      for (int i = 0; i < 2000; ++i) {
        const std::string role = node->text({"INFO", "replication"});
        if (role.find("role:slave") == std::string::npos) break;
        if (role.find("master_link_status:up") != std::string::npos) break;
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      }
      node->call({"WAIT", "1", "100"});
    }
  }

 private:
  static bool is_ok(const RedisServer& node) {
    return node.text({"CLUSTER", "INFO"}).find("cluster_state:ok") != std::string::npos;
  }

  std::vector<std::unique_ptr<RedisServer>> nodes_;
};

}  // namespace fixpoint::test
