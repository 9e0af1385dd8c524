// A single description of the format, walk(), serves writing and reading, so that they cannot differ.
#include "runtime/serialize.h"

#include <cstring>
#include <type_traits>

namespace cresset::runtime {
namespace {

class Writer {
 public:
  static constexpr bool kReads = false;
  std::string bytes;

  template <class T>
  void raw(T& value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void text(std::string& value) { bytes += value; }
  bool good() const { return true; }
  void fail() {}
};

class Reader {
 public:
  static constexpr bool kReads = true;
  explicit Reader(std::string_view bytes) : left_(bytes) {}

  template <class T>
  void raw(T& value) {
    if (left_.size() < sizeof value) return fail();
    std::memcpy(&value, left_.data(), sizeof value);
    left_.remove_prefix(sizeof value);
  }
  void text(std::string& value) {
    if (left_.size() < value.size()) return fail();
    std::memcpy(value.data(), left_.data(), value.size());
    left_.remove_prefix(value.size());
  }
  bool good() const { return good_; }
  void fail() {
    good_ = false;
    left_ = {};
  }
  size_t left() const { return left_.size(); }

 private:
  std::string_view left_;
  bool good_ = true;
};

template <class A, class T>
  requires std::is_arithmetic_v<T> || std::is_enum_v<T>
void walk(A& a, T& value) {
  a.raw(value);
}
template <class A, class Tag>
void walk(A& a, Id<Tag>& id) {
  a.raw(id.index);
}
template <class A>
void walk(A& a, SizeRef& ref) {
  a.raw(ref.index);
}

// The number of elements. A count larger than the remaining bytes means damage.
template <class A, class List>
void walk_size(A& a, List& list) {
  auto count = static_cast<uint32_t>(list.size());
  a.raw(count);
  if constexpr (A::kReads) {
    if (!a.good() || count > a.left()) return a.fail();
    list.resize(count);
  }
}
template <class A>
void walk(A& a, std::string& text) {
  walk_size(a, text);
  if (a.good()) a.text(text);
}
template <class A, class T>
void walk(A& a, std::vector<T>& list) {
  walk_size(a, list);
  for (size_t i = 0; a.good() && i < list.size(); ++i) {
    if constexpr (std::is_same_v<T, bool>) {
      bool value = list[i];
      walk(a, value);
      list[i] = value;
    } else {
      walk(a, list[i]);
    }
  }
}
template <class A, class T>
void walk(A& a, std::optional<T>& value) {
  bool has = value.has_value();
  walk(a, has);
  if constexpr (A::kReads) value = has ? std::optional<T>(T{}) : std::nullopt;
  if (has && a.good()) walk(a, *value);
}
template <class A>
void walk(A&, graph::None&) {}
template <class A>
void walk(A&, graph::StridedLayout&) {}
template <class A>
void walk(A& a, graph::Device& device) {
  walk(a, device.kind);
  walk(a, device.index);
}

template <size_t I = 0, class... Ts>
void make_alternative(std::variant<Ts...>& value, size_t which) {
  if constexpr (I < sizeof...(Ts)) {
    if (which == I) {
      value.template emplace<I>();
    } else {
      make_alternative<I + 1>(value, which);
    }
  }
}
template <class A, class... Ts>
void walk(A& a, std::variant<Ts...>& value) {
  auto which = static_cast<uint8_t>(value.index());
  a.raw(which);
  if constexpr (A::kReads) {
    if (which >= sizeof...(Ts)) return a.fail();
    make_alternative(value, which);
  }
  std::visit([&](auto& alternative) { walk(a, alternative); }, value);
}

template <class A>
void walk(A& a, sym::SizeProgram::Instr& instr) {
  walk(a, instr.kind);
  walk(a, instr.a);
  walk(a, instr.b);
  walk(a, instr.value);
}
template <class A>
void walk(A& a, sym::SizeProgram& sizes) {
  std::vector<sym::SizeProgram::Instr> instrs = sizes.instrs();
  std::vector<uint32_t> outputs = sizes.outputs();
  walk(a, instrs);
  walk(a, outputs);
  const size_t count = outputs.size();
  if constexpr (A::kReads) {
    sizes = sym::SizeProgram::from_parts(std::move(instrs), std::move(outputs));
    if (sizes.output_count() != count) a.fail();
  }
}
template <class A>
void walk(A& a, KernelRecord& record) {
  walk(a, record.device);
  walk(a, record.hash);
  walk(a, record.plan.numbers);
}
template <class A>
void walk(A& a, TensorSlot& slot) {
  walk(a, slot.home);
  walk(a, slot.position);
  walk(a, slot.base);
  walk(a, slot.dtype);
  walk(a, slot.device);
  walk(a, slot.sizes);
  walk(a, slot.strides);
  walk(a, slot.offset);
  walk(a, slot.bytes);
  walk(a, slot.first_step);
  walk(a, slot.last_step);
  walk(a, slot.continues);
  walk(a, slot.name);
}
template <class A>
void walk(A& a, Launch& launch) {
  walk(a, launch.kernel);
  walk(a, launch.device);
  walk(a, launch.buffers);
  walk(a, launch.symbols);
}
template <class A>
void walk(A& a, ExternCall& call) {
  std::string name;  // operator ids are valid only in a single process
  if constexpr (!A::kReads) name = graph::op_name(call.op);
  walk(a, name);
  if constexpr (A::kReads) call.op = graph::op_id(name);
  walk(a, call.args);
  walk(a, call.results);
  walk(a, call.location);
}
template <class A>
void walk(A& a, Copy& copy) {
  walk(a, copy.from);
  walk(a, copy.to);
  walk(a, copy.unseen);
}
template <class A>
void walk(A& a, Release& release) {
  walk(a, release.tensors);
}

template <class A>
void walk(A& a, IndexSite& site) {
  walk(a, site.fault);
  walk(a, site.dim);
  walk(a, site.extent);
  walk(a, site.location);
}

template <class A>
void walk(A& a, Program& program, std::vector<std::string>& symbols, std::vector<KernelRecord>& kernels) {
  walk(a, symbols);
  walk(a, program.sizes);
  walk(a, program.tensors);
  walk(a, program.steps);
  walk(a, program.inputs);
  walk(a, program.constants);
  walk(a, program.outputs);
  walk(a, kernels);
  walk(a, program.locations);
  walk(a, program.index_sites);
}

}  // namespace

std::optional<std::string> to_bytes(const Program& program, const sym::VarNames& names) {
  std::vector<std::string> symbols;
  for (const sym::VarId var : program.symbols) {
    const auto name = names.find(var);
    if (name == names.end()) return std::nullopt;
    symbols.push_back(name->second);
  }
  std::vector<KernelRecord> kernels;
  for (const auto& kernel : program.kernels) kernels.push_back(kernel->record());
  Writer writer;
  walk(writer, const_cast<Program&>(program), symbols, kernels);
  return std::move(writer.bytes);
}

std::optional<LoadedProgram> from_bytes(std::string_view bytes,
                                        const std::function<std::optional<sym::VarId>(const std::string&)>& symbol) {
  Reader reader(bytes);
  LoadedProgram loaded;
  std::vector<std::string> symbols;
  walk(reader, loaded.program, symbols, loaded.kernels);
  if (!reader.good() || reader.left() != 0) return std::nullopt;
  for (const std::string& name : symbols) {
    const std::optional<sym::VarId> var = symbol(name);
    if (!var) return std::nullopt;
    loaded.program.symbols.push_back(*var);
  }
  return loaded;
}

}  // namespace cresset::runtime
