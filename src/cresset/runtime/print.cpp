// Prints programs for readers: slots, then steps, a line for each.
#include <fmt/format.h>

#include "runtime/program.h"

namespace cresset::runtime {
namespace {

class Printer {
 public:
  explicit Printer(const Program& program) : program_(program) {}

  std::string run() {
    for (uint32_t t = 0; t < program_.tensors.size(); ++t) tensor(t);
    for (const Step& step : program_.steps) std::visit([&](const auto& s) { print(s); }, step);
    out_ += "return";
    for (TensorId id : program_.outputs) out_ += fmt::format(" {}", name(id));
    return out_ + "\n";
  }

 private:
  static std::string name(TensorId id) { return id.valid() ? fmt::format("t{}", id.index) : "-"; }
  static std::string size(SizeRef ref) { return fmt::format("#{}", ref.index); }
  static std::string sizes(const std::vector<SizeRef>& refs) {
    std::string out;
    for (SizeRef ref : refs) out += (out.empty() ? "" : ", ") + size(ref);
    return fmt::format("[{}]", out);
  }
  static std::string where(const TensorSlot& slot) {
    switch (slot.home) {
      case Home::Input:
        return fmt::format("input {}", slot.position);
      case Home::Constant:
        return fmt::format("constant {}", slot.position);
      case Home::Arena:
        return fmt::format("arena from {} to {} bytes {}", slot.first_step, slot.last_step, size(slot.bytes));
      case Home::Fresh:
        return fmt::format("fresh bytes {}", size(slot.bytes));
      case Home::Extern:
        return "extern";
      case Home::View:
        return fmt::format("view of {} at {}", name(slot.base), size(slot.offset));
      case Home::Reports:
        return "reports";
    }
    return "";
  }
  void tensor(uint32_t t) {
    const TensorSlot& slot = program_.tensors[t];
    out_ += fmt::format("t{}: {}{}{} {}  # {}\n", t, to_string(slot.dtype), sizes(slot.sizes), sizes(slot.strides),
                        where(slot), slot.name);
  }
  template <class T>
  std::string argument(const T&) const {
    return "..";
  }
  std::string argument(const graph::None&) const { return "None"; }
  std::string argument(TensorId id) const { return name(id); }
  std::string argument(SizeRef ref) const { return size(ref); }
  std::string argument(const std::vector<SizeRef>& refs) const { return sizes(refs); }
  std::string argument(double number) const { return fmt::format("{}", number); }
  std::string argument(bool flag) const { return flag ? "True" : "False"; }
  std::string argument(const std::string& text) const { return fmt::format("\"{}\"", text); }
  std::string argument(DType dtype) const { return std::string(to_string(dtype)); }
  std::string argument(const std::vector<std::optional<TensorId>>& ids) const {
    std::string out;
    for (const auto& id : ids) out += (out.empty() ? "" : ", ") + (id ? name(*id) : "None");
    return fmt::format("[{}]", out);
  }
  void print(const Launch& launch) {
    out_ += fmt::format("launch kernel{}(", launch.kernel);
    for (size_t i = 0; i < launch.buffers.size(); ++i) out_ += (i == 0 ? "" : ", ") + name(launch.buffers[i]);
    out_ += ";";
    for (SizeRef symbol : launch.symbols) out_ += fmt::format(" {}", size(symbol));
    out_ += ")\n";
  }
  void print(const ExternCall& call) {
    for (size_t i = 0; i < call.results.size(); ++i) out_ += (i == 0 ? "" : ", ") + name(call.results[i]);
    out_ += fmt::format(" = {}(", graph::op_name(call.op));
    for (size_t i = 0; i < call.args.size(); ++i)
      out_ += (i == 0 ? "" : ", ") + std::visit([&](const auto& a) { return argument(a); }, call.args[i]);
    out_ += ")\n";
  }
  void print(const Copy& copy) {
    out_ += fmt::format("copy {} -> {}{}\n", name(copy.from), name(copy.to), copy.unseen ? " unseen" : "");
  }
  void print(const Release& release) {
    out_ += "release";
    for (TensorId id : release.tensors) out_ += fmt::format(" {}", name(id));
    out_ += "\n";
  }

  const Program& program_;
  std::string out_;
};

}  // namespace

std::string print(const Program& program) { return Printer(program).run(); }

}  // namespace cresset::runtime
