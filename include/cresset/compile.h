// cresset for libtorch programs: the compiler without Python.
//
//   auto fast = cresset::compile([&](const std::vector<at::Tensor>& x) { return std::vector{model->forward(x[0])}; });
//   at::Tensor y = fast({input})[0];
//
// The first call captures the function on proxy tensors with symbolic sizes. Later calls with tensors of other sizes
// run the same compiled code. Code which cannot be captured runs in eager mode.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#if defined(__GNUC__)
#define CRESSET_API __attribute__((visibility("default")))
#else
#define CRESSET_API
#endif

namespace cresset {

using TensorFunction = std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>&)>;

struct CompileSettings {
  bool dynamic = true;          // false: specialize every size
  bool fullgraph = false;       // true: throw std::runtime_error instead of running the function uncompiled
  bool eager_rounding = false;  // round bf16 and fp16 after every operator, as eager does
  bool freeze = false;          // compute once what depends on weights alone; weights that are written are noticed
  int64_t entry_limit = 64;     // cache entries that are kept; the least recently used entry is dropped
  // A number that changes whenever state that the function depends on beside its arguments changes (a module's training
  // flag, say): a new value is a new variant. May be empty.
  std::function<uint64_t()> state;
};

struct CompiledStats {
  int64_t graphs = 0;  // compiled cache entries
  int64_t calls = 0;
  int64_t eager_calls = 0;  // calls which ran the function itself
  int64_t operators_captured = 0, kernels = 0, extern_calls = 0;
  std::vector<std::string> recompiles;     // the failed guard of each recompile
  std::vector<std::string> eager_reasons;  // reasons for running the function itself
};

// A compiled function. Copies share the compiled code. Calls from several threads are safe.
class CRESSET_API CompiledFunction {
 public:
  CompiledFunction(TensorFunction function, CompileSettings settings);
  ~CompiledFunction();
  CompiledFunction(const CompiledFunction&);
  CompiledFunction& operator=(const CompiledFunction&);

  // Returns the function's own results, up to rounding. Throws the exceptions of the function.
  std::vector<at::Tensor> operator()(const std::vector<at::Tensor>& inputs) const;
  CompiledStats stats() const;

  struct State;

 private:
  std::shared_ptr<State> state_;
};

// Compiles a function of tensors. Its control flow must not depend on tensor data. CompileSettings::state covers
// dependence on other state.
CRESSET_API CompiledFunction compile_function(TensorFunction function, CompileSettings settings);

template <class T, class = void>
struct IsModule : std::false_type {};
template <class T>
struct IsModule<T, std::void_t<decltype(std::declval<T&>()->modules())>> : std::true_type {};

// A module holder is excluded first, because the test whether it is callable does not compile.
template <class Function, std::enable_if_t<!IsModule<Function>::value, int> = 0>
CompiledFunction compile(Function function, CompileSettings settings = {}) {
  return compile_function(TensorFunction(std::move(function)), std::move(settings));
}

// Compiles a torch::nn module (any type with `->forward(at::Tensor...) -> at::Tensor` and `->modules()`). The training
// flags of all submodules are guarded.
template <class Module, std::enable_if_t<IsModule<Module>::value, int> = 0>
CompiledFunction compile(Module module, CompileSettings settings = {}) {
  settings.state = [module]() mutable {
    uint64_t flags = 1469598103934665603ULL;  // FNV-1a over the training flags
    for (const auto& part : module->modules()) flags = (flags ^ (part->is_training() ? 1 : 2)) * 1099511628211ULL;
    return flags;
  };
  return compile_function(
      [module](const std::vector<at::Tensor>& x) mutable -> std::vector<at::Tensor> {
        if constexpr (std::is_invocable_v<decltype([](auto& m, const at::Tensor& a) -> decltype(m->forward(a)) {
                                            return m->forward(a);
                                          }),
                                          Module&, const at::Tensor&>)
          return {module->forward(x.at(0))};
        else
          return {module->forward(x.at(0), x.at(1))};
      },
      std::move(settings));
}

}  // namespace cresset
