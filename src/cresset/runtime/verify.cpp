#include "runtime/verify.h"

#include <fmt/format.h>

namespace cresset::runtime {
namespace {

enum class State : uint8_t { Unwritten, Ready, Released };

class Verifier {
 public:
  explicit Verifier(const Program& program) : program_(program), state_(program.tensors.size(), State::Unwritten) {}

  std::string run() {
    for (const TensorSlot& slot : program_.tensors) check_slot(slot);
    for (const IndexSite& site : program_.index_sites)
      if (!in_range(site.extent) || site.location >= program_.locations.size()) fail("a site of reports out of range");
    if (!error_.empty()) return error_;
    for (size_t t = 0; t < program_.tensors.size(); ++t) {
      const Home home = program_.tensors[t].home;
      if (home == Home::Input || home == Home::Constant || home == Home::Reports) state_[t] = State::Ready;
    }
    for (step_ = 0; step_ < program_.steps.size(); ++step_)
      std::visit([&](const auto& s) { check(s); }, program_.steps[step_]);
    for (TensorId id : program_.outputs) reads(id);
    return error_;
  }

 private:
  void fail(std::string text) {
    if (error_.empty()) error_ = fmt::format("step {}: {}", step_, text);
  }
  bool in_range(SizeRef ref) const { return ref.index < program_.sizes.output_count(); }
  void check_slot(const TensorSlot& slot) {
    if (slot.sizes.size() != slot.strides.size()) fail("rank of sizes and strides differ in " + slot.name);
    for (SizeRef ref : slot.sizes)
      if (!in_range(ref)) fail("size reference out of range in " + slot.name);
    for (SizeRef ref : slot.strides)
      if (!in_range(ref)) fail("stride reference out of range in " + slot.name);
    if (slot.continues.valid() && slot.continues.index >= program_.tensors.size())
      fail("continues no tensor: " + slot.name);
    if (slot.home != Home::View) return;
    if (slot.base.index >= program_.tensors.size())
      fail("view without a base: " + slot.name);
    else if (program_.tensors[slot.base.index].home == Home::View)
      fail("view of a view: " + slot.name);
  }
  // The slot which owns the memory; nullptr after a failure.
  State* owner(TensorId id) {
    if (id.index >= program_.tensors.size()) {
      fail("tensor id out of range");
      return nullptr;
    }
    const TensorSlot& slot = program_.tensors[id.index];
    return &state_[slot.home == Home::View ? slot.base.index : id.index];
  }
  void reads(TensorId id) {
    const State* state = owner(id);
    if (state == nullptr || *state == State::Ready) return;
    fail(fmt::format("{} is read {}", program_.tensors[id.index].name,
                     *state == State::Unwritten ? "before it is written" : "after its release"));
  }
  void writes(TensorId id) {
    if (State* state = owner(id)) *state = State::Ready;
  }
  void check(const Launch& launch) {
    for (SizeRef ref : launch.symbols)
      if (!in_range(ref)) fail("symbol reference out of range");
    for (TensorId id : launch.buffers) {
      writes(id);  // the kernel itself determines which buffers are read
      if (id.index >= program_.tensors.size()) continue;
      const TensorSlot& slot = program_.tensors[id.index];
      if (slot.device.kind != launch.device && (slot.device.kind != DeviceKind::Cpu || !slot.sizes.empty()))
        fail(fmt::format("{} is on another device than the kernel", slot.name));
    }
  }
  void check(const ExternCall& call) {
    for (const ExternArg& arg : call.args) {
      if (const auto* id = std::get_if<TensorId>(&arg)) reads(*id);
      if (const auto* list = std::get_if<std::vector<std::optional<TensorId>>>(&arg))
        for (const std::optional<TensorId>& id : *list)
          if (id) reads(*id);
    }
    for (TensorId id : call.results)
      if (id.valid()) writes(id);
  }
  void check(const Copy& copy) {
    reads(copy.from);
    writes(copy.to);
  }
  void check(const Release& release) {
    for (TensorId id : release.tensors)
      if (State* state = owner(id)) *state = State::Released;
  }

  const Program& program_;
  std::vector<State> state_;
  size_t step_ = 0;
  std::string error_;
};

}  // namespace

std::string verify(const Program& program) { return Verifier(program).run(); }

}  // namespace cresset::runtime
