// A daemon's socket for the tests of kvsyncfs-stat. Thread: one, besides its own.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <thread>

#include "tests/lib/temp_folder.h"

namespace kvsyncfs {

/// A socket with a daemon's behaviour: `serve` gets each of `count` connections.
class FakeDaemon {
 public:
  explicit FakeDaemon(std::function<void(int)> serve = {}, int count = 1, int queue = 8)
      : path_(folder_.path() + "/daemon.sock"), fd_(::socket(AF_UNIX, SOCK_STREAM, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, path_.c_str());
    EXPECT_EQ(::bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(::listen(fd_, queue), 0);
    if (!serve) return;
    thread_ = std::thread([this, count, serve = std::move(serve)] {
      for (int i = 0; i < count; ++i) {
        const int connection = ::accept(fd_, nullptr, nullptr);
        serve(connection);
        ::close(connection);
      }
    });
  }
  ~FakeDaemon() {
    if (thread_.joinable()) thread_.join();
    ::close(fd_);
  }
  const std::string& path() const { return path_; }

 private:
  TempFolder folder_;
  std::string path_;
  int fd_;
  std::thread thread_;
};

inline std::string read_line(int connection) {
  std::string line;
  char c = 0;
  while (::read(connection, &c, 1) == 1 && c != '\n') line += c;
  return line;
}

inline void write_all(int connection, std::string_view text) {
  while (!text.empty()) {
    const ssize_t size = ::send(connection, text.data(), text.size(), MSG_NOSIGNAL);
    if (size <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(size));
  }
}

}  // namespace kvsyncfs
