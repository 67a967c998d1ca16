#include "local_engine/mapped_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace fixpoint::engine {

Result<MappedFile> MappedFile::open(const std::string& path) {
  const auto io_error = [&](const char* action) {
    return fail(ErrorCode::io, std::string("cannot ") + action + " model file \"" + path +
                                   "\": " + std::system_category().message(errno));
  };
  // O_NONBLOCK: a FIFO must not make the open wait for a writer; it is refused below.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return io_error("open");
  struct stat status{};
  if (::fstat(fd, &status) != 0) {
    auto error = io_error("stat");
    ::close(fd);
    return error;
  }
  if (!S_ISREG(status.st_mode)) {
    ::close(fd);
    return fail(ErrorCode::io, "model file \"" + path + "\" is not a regular file");
  }
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0) {
    ::close(fd);
    return MappedFile({});
  }
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (address == MAP_FAILED) {
    auto error = io_error("map");
    ::close(fd);
    return error;
  }
  ::close(fd);
  return MappedFile({static_cast<const std::byte*>(address), size});
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace fixpoint::engine
