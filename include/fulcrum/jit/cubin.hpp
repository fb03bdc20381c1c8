// What a cubin says about itself: registers, stack, shared memory, the ptxas that made it, and a hash of its machine
// code.
//
// Called by jit.hpp for every compile; the tuner drops duplicates by `machine`, the record of benchmarks stores it.
// Invariant: reads only inside the image, whatever its bytes are; a damaged image gives valid == false.
// A cubin is an ELF64 file (System V ABI, chapter 4); .nv.info holds records of 4 bytes (format, attribute, 16-bit size
// or value), followed by `size` bytes when the format is 4. Attribute numbers were read from the output of cuobjdump
// -elf.
#pragma once

#include <fulcrum/host/hash.hpp>

#include <cstring>
#include <string>

FULCRUM_NAMESPACE_BEGIN
namespace jit {

struct CubinInfo {
  bool valid = false;
  uint32_t registers = 0;          // per thread
  uint32_t stack_bytes = 0;        // local memory of a thread: spills and arrays
  uint32_t spill_store_bytes = 0;  // from the compiler's log
  uint32_t spill_load_bytes = 0;
  uint32_t static_shared_bytes = 0;
  uint64_t code_bytes = 0;  // of .text
  std::string ptxas;        // "13.0.88"
  std::string machine;      // "<32 hex digits>-13.0.88": equal code from an equal assembler
};

namespace detail {

constexpr uint32_t info_register_count = 0x2F;  // EIATTR_REGCOUNT: symbol, count
constexpr uint32_t info_frame_bytes = 0x11;     // EIATTR_FRAME_SIZE: symbol, bytes

/// Bounds-checked view of an ELF64 image.
class Elf {
 public:
  struct Section {
    const char* name = "";
    const char* data = nullptr;
    uint64_t bytes = 0;         // in the file
    uint64_t memory_bytes = 0;  // sh_size, also of sections that the file does not hold
    uint32_t link = 0;
  };

  explicit Elf(const std::string& image) : image_(image) {
    // e_shoff at 40, e_shentsize 58, e_shnum 60, e_shstrndx 62
    if (image.size() < 64 || std::memcmp(image.data(), "\177ELF\2\1", 6) != 0) return;
    table_ = read<uint64_t>(40);
    count_ = read<uint16_t>(60);
    names_ = read<uint16_t>(62);
    valid_ = read<uint16_t>(58) == 64 && count_ > 0 && inside(table_, uint64_t{count_} * 64) && names_ < count_;
  }

  bool valid() const { return valid_; }
  uint32_t num_sections() const { return valid_ ? count_ : 0; }

  bool section(uint32_t index, Section& out) const {
    if (index >= num_sections()) return false;
    const uint64_t header = table_ + uint64_t{index} * 64;
    const bool in_file = read<uint32_t>(header + 4) != 8;  // SHT_NOBITS
    const uint64_t offset = read<uint64_t>(header + 24);
    out.memory_bytes = read<uint64_t>(header + 32);
    out.bytes = in_file ? out.memory_bytes : 0;
    if (!inside(offset, out.bytes)) return false;
    out.data = image_.data() + offset;
    out.link = read<uint32_t>(header + 40);
    out.name = text(names_, read<uint32_t>(header));
    return true;
  }

  /// Zero-terminated string `offset` of string section `index`; "" when it is not inside.
  const char* text(uint32_t index, uint32_t offset) const {
    const uint64_t header = table_ + uint64_t{index} * 64;
    const uint64_t begin = read<uint64_t>(header + 24);
    const uint64_t bytes = read<uint64_t>(header + 32);
    if (!inside(begin, bytes) || offset >= bytes) return "";
    const char* word = image_.data() + begin + offset;
    return std::memchr(word, 0, bytes - offset) != nullptr ? word : "";
  }

  template <class T>
  T read(uint64_t offset) const {
    T value{};
    if (inside(offset, sizeof(T))) std::memcpy(&value, image_.data() + offset, sizeof(T));
    return value;
  }

  bool find(const std::string& name, Section& out) const {
    for (uint32_t index = 0; index < num_sections(); ++index) {
      if (section(index, out) && name == out.name) return true;
    }
    return false;
  }

 private:
  bool inside(uint64_t offset, uint64_t bytes) const {
    return offset <= image_.size() && bytes <= image_.size() - offset;
  }

  const std::string& image_;
  uint64_t table_ = 0;
  uint32_t count_ = 0;
  uint32_t names_ = 0;
  bool valid_ = false;
};

template <class T>
T load_from(const char* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

/// Index of the symbol called `name`, 0 when there is none (symbol 0 is always the empty one).
inline uint32_t symbol_index(const Elf& elf, const std::string& name) {
  Elf::Section symbols;
  if (!elf.find(".symtab", symbols)) return 0;
  const uint64_t count = symbols.bytes / 24;  // sizeof(Elf64_Sym); st_name comes first
  for (uint64_t index = 1; index < count && symbols.link < elf.num_sections(); ++index) {
    if (name == elf.text(symbols.link, load_from<uint32_t>(symbols.data + index * 24)))
      return static_cast<uint32_t>(index);
  }
  return 0;
}

/// The value that .nv.info gives attribute `which` of `symbol`, 0 when it names none.
inline uint32_t info_value(const Elf& elf, uint32_t which, uint32_t symbol) {
  Elf::Section info;
  if (!elf.find(".nv.info", info)) return 0;
  for (uint64_t at = 0; at + 4 <= info.bytes;) {
    const uint32_t format = static_cast<unsigned char>(info.data[at]);
    const uint32_t attribute = static_cast<unsigned char>(info.data[at + 1]);
    const uint64_t payload = format == 4 ? load_from<uint16_t>(info.data + at + 2) : 0;
    at += 4;
    if (payload > info.bytes - at) return 0;
    if (attribute == which && payload >= 8 && load_from<uint32_t>(info.data + at) == symbol) {
      return load_from<uint32_t>(info.data + at + 4);
    }
    at += payload;
  }
  return 0;
}

/// "13.0.88" from the tool note, which says "Cuda compilation tools, release 13.0, V13.0.88".
inline std::string ptxas_version(const Elf& elf) {
  Elf::Section note;
  if (!elf.find(".note.nv.tkinfo", note)) return "unknown";
  const std::string words(note.data, note.bytes);
  const size_t begin = words.find(", V");
  if (begin == std::string::npos) return "unknown";
  const size_t end = words.find_first_not_of("0123456789.", begin + 3);
  return words.substr(begin + 3, end == std::string::npos ? end : end - begin - 3);
}

inline bool starts_with(const char* text, const char* prefix) {
  return std::strncmp(text, prefix, std::strlen(prefix)) == 0;
}

}  // namespace detail

/// Hash of the contents of every .text.* and .nv.constant* section, in file order; names do not take part, so two
/// entries with the same code are equal. "" for something that is not a cubin.
inline std::string machine_hash(const std::string& image) {
  const detail::Elf elf(image);
  if (!elf.valid()) return "";
  Fnv128 hash;
  detail::Elf::Section section;
  for (uint32_t index = 0; index < elf.num_sections(); ++index) {
    if (!elf.section(index, section)) return "";
    const bool code = detail::starts_with(section.name, ".text.");
    if (code || detail::starts_with(section.name, ".nv.constant")) hash.add(section.data, section.bytes);
  }
  return hash.hex() + "-" + detail::ptxas_version(elf);
}

/// Facts about kernel `entry` of a cubin. Spills need the log: see add_spills().
inline CubinInfo inspect_cubin(const std::string& image, const std::string& entry) {
  CubinInfo info;
  const detail::Elf elf(image);
  const uint32_t symbol = elf.valid() ? detail::symbol_index(elf, entry) : 0;
  detail::Elf::Section section;
  if (symbol == 0 || !elf.find(".text." + entry, section)) return info;
  info.code_bytes = section.bytes;
  info.registers = detail::info_value(elf, detail::info_register_count, symbol);
  info.stack_bytes = detail::info_value(elf, detail::info_frame_bytes, symbol);
  if (elf.find(".nv.shared." + entry, section)) info.static_shared_bytes = static_cast<uint32_t>(section.memory_bytes);
  info.ptxas = detail::ptxas_version(elf);
  info.machine = machine_hash(image);
  info.valid = !info.machine.empty();
  return info;
}

/// Reads "0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads", which ptxas -v prints after the line
/// "Function properties for <entry>".
inline void add_spills(const std::string& log, const std::string& entry, CubinInfo& info) {
  const std::string head = "Function properties for " + entry;
  size_t at = log.find(head);
  while (at != std::string::npos && at + head.size() < log.size() && log[at + head.size()] != '\n' &&
         log[at + head.size()] != '\r') {
    at = log.find(head, at + 1);  // another entry whose name begins with this one's
  }
  const size_t frame = at == std::string::npos ? at : log.find("bytes stack frame,", at);
  if (frame == std::string::npos) return;
  unsigned stores = 0;
  unsigned loads = 0;
  if (std::sscanf(log.c_str() + frame, "bytes stack frame, %u bytes spill stores, %u bytes spill loads", &stores,
                  &loads) != 2)
    return;
  info.spill_store_bytes = stores;
  info.spill_load_bytes = loads;
}

}  // namespace jit
FULCRUM_NAMESPACE_END
