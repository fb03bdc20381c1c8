// Small POSIX helpers: read a whole file, publish a whole file by rename, exclude other threads and processes.
//
// Called by table.hpp, jit.hpp and jit/cache.hpp, and by the tuner.
// Invariant: publish_file() leaves either the old file or the complete new one under its name, whenever the process
// dies.
#pragma once

#include <fulcrum/host/error.hpp>

#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <string>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

FULCRUM_NAMESPACE_BEGIN

/// Words for the errno values that files meet; static storage, unlike strerror's.
constexpr const char* errno_text(int error) {
  switch (error) {
    case ENOENT: return "no such file or folder";
    case EACCES:
    case EPERM: return "permission denied";
    case EROFS: return "the file system is read-only";
    case ENOSPC:
    case EDQUOT: return "no space left";
    case EISDIR: return "it is a folder";
    case ENODEV: return "it is a device";
    case ENOTDIR: return "a part of its path is not a folder";
    case EMFILE:
    case ENFILE: return "too many open files";
    case ENAMETOOLONG: return "the name is too long";
    default: return "the system refused it";
  }
}

inline Status file_error(const char* action, int error) {
  return make_error(Code::io, "cannot {subject}: {detail} (errno {value})", action, error, 0, errno_text(error));
}

/// A file descriptor that closes itself.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() { close(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  /// False when the system reports a late write error.
  bool close() {
    if (fd_ < 0) return true;
    const bool closed = ::close(fd_) == 0;
    fd_ = -1;
    return closed;
  }

 private:
  int fd_;
};

/// Appends all bytes of `path` to `content`.
inline Status read_file(const char* path, std::string& content) {
  Descriptor file(::open(path, O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return file_error("open the file", errno);
  struct stat facts {};
  const bool known = ::fstat(file.get(), &facts) == 0;
  if (known && S_ISCHR(facts.st_mode)) return file_error("read the file", ENODEV);  // /dev/zero has no end
  if (known && facts.st_size > 0) content.reserve(content.size() + static_cast<size_t>(facts.st_size));
  char buffer[1 << 16];  // one system call per 64 KiB: a cubin takes one or two
  for (;;) {
    const ssize_t count = ::read(file.get(), buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return file_error("read the file", errno);
    if (count == 0) return success();
    content.append(buffer, static_cast<size_t>(count));
  }
}

namespace detail {

inline Status write_all(int fd, const std::string& content) {
  size_t done = 0;
  while (done < content.size()) {
    const ssize_t count = ::write(fd, content.data() + done, content.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return file_error("write the file", errno);
    done += static_cast<size_t>(count);
  }
  return success();
}

}  // namespace detail

/// The file that `path` names once its links are followed; `path` itself where nothing is there yet.
inline std::string resolve_links(const std::string& path) {
  char* found = ::realpath(path.c_str(), nullptr);
  std::string resolved = found != nullptr ? found : path;
  std::free(found);
  return resolved;
}

/// Writes `content` to `temporary`, forces it to the disk and renames it to `path`. Removes `temporary` on failure.
inline Status publish_file(const std::string& path, const std::string& temporary, const std::string& content) {
  Status status = success();
  {
    Descriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (!file.valid()) return file_error("create the file", errno);
    status = detail::write_all(file.get(), content);
    // The bytes must be on the disk before the name is: a rename may survive a crash that the data does not.
    if (status.ok() && ::fsync(file.get()) != 0) status = file_error("write the file", errno);
    if (!file.close() && status.ok()) status = file_error("write the file", errno);
  }
  if (status.ok() && ::rename(temporary.c_str(), path.c_str()) != 0) status = file_error("rename the file", errno);
  if (!status.ok()) (void)::unlink(temporary.c_str());
  return status;
}

/// The right to make what belongs to a lock file: waits until no other thread or process has it. Removes the file when
/// done; the system drops the lock of a holder that dies.
class FileLock {
 public:
  explicit FileLock(const std::string& path) : path_(path) {
    for (;;) {
      fd_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
      if (fd_ < 0) {
        status_ = file_error("create a lock file", errno);
        return;
      }
      // Every open() has its own lock, so threads of one process exclude each other too.
      while (::flock(fd_, LOCK_EX) != 0) {
        if (errno == EINTR) continue;
        status_ = file_error("lock a file", errno);
        ::close(fd_);
        fd_ = -1;
        return;
      }
      // Whoever held the lock before may have removed this very file; a lock on a nameless file excludes nobody.
      struct stat held {};
      struct stat named {};
      if (::fstat(fd_, &held) == 0 && ::stat(path_.c_str(), &named) == 0 && held.st_ino == named.st_ino &&
          held.st_dev == named.st_dev)
        return;
      ::close(fd_);
    }
  }
  ~FileLock() {
    if (fd_ < 0) return;
    (void)::unlink(path_.c_str());
    (void)::flock(fd_, LOCK_UN);  // close() alone would leave it with a process forked in the meantime
    ::close(fd_);
  }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  const Status& status() const { return status_; }

 private:
  std::string path_;
  int fd_ = -1;
  Status status_{};
};

/// mkdir -p. True when the folder exists afterwards.
inline bool make_folders(const std::string& path) {
  for (size_t at = 1; at <= path.size(); ++at) {
    if (at != path.size() && path[at] != '/') continue;
    if (::mkdir(path.substr(0, at).c_str(), 0777) != 0 && errno != EEXIST && errno != EISDIR) {
      // A parent that exists may still refuse: only the last folder decides.
      if (at == path.size()) break;
    }
  }
  struct stat facts {};
  return ::stat(path.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode);
}

FULCRUM_NAMESPACE_END
