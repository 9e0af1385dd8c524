// Recording of streams: graphs of the CUDA driver.
#include "runtime/cuda/cuda_device.h"

namespace cresset::runtime::cuda {
namespace {

// Flags of cuStreamCreate and cuStreamBeginCapture.
constexpr unsigned kNonBlocking = 1;
constexpr int kThreadLocal = 1;  // other threads may allocate memory meanwhile
constexpr int kNotCapturing = 0;
constexpr int kKernelNode = 0;

// CUDA_KERNEL_NODE_PARAMS_v2.
struct KernelNode {
  void* function;  // nullptr: `kernel` says which
  unsigned grid[3], block[3];
  unsigned shared_bytes;
  void** parameters;
  void** extra;
  void* kernel;
  void* context;
};

class CudaGraph final : public LaunchGraph {
 public:
  CudaGraph(std::shared_ptr<const Driver> driver, void* graph) : driver_(std::move(driver)), graph_(graph) {}
  // The driver waits for a run that is not done.
  ~CudaGraph() override {
    if (executable_ != nullptr) driver_->destroy_executable(executable_);
    driver_->destroy_graph(graph_);
  }
  CudaGraph(const CudaGraph&) = delete;
  CudaGraph& operator=(const CudaGraph&) = delete;

  void instantiate() {
    driver_->check(driver_->graph_nodes(graph_, nullptr, &size_), "cuGraphGetNodes");
    driver_->check(driver_->instantiate(&executable_, graph_, 0), "cuGraphInstantiate");
  }
  size_t size() const override { return size_; }
  void update(GraphNode node, DeviceFunction function, const LaunchConfig& config,
              std::span<const int64_t> parameters) override {
    PackedParameters packed(parameters);
    const KernelNode given{.function = nullptr,
                           .grid = {config.grid[0], config.grid[1], config.grid[2]},
                           .block = {config.block[0], config.block[1], config.block[2]},
                           .shared_bytes = config.shared_bytes,
                           .parameters = nullptr,
                           .extra = packed.extra(),
                           .kernel = function.handle,
                           .context = nullptr};
    driver_->check(driver_->set_kernel_node(executable_, node, &given), "cuGraphExecKernelNodeSetParams");
  }
  void launch(Stream stream) override { driver_->check(driver_->launch_graph(executable_, stream), "cuGraphLaunch"); }

 private:
  const std::shared_ptr<const Driver> driver_;
  void* const graph_;  // its nodes name those of the executable
  void* executable_ = nullptr;
  size_t size_ = 0;
};

}  // namespace

Stream CudaDevice::make_stream() {
  if (!driver_->has_graphs) throw DeviceError("this CUDA driver lacks functions for graphs");
  void* stream = nullptr;
  driver_->check(driver_->create_stream(&stream, kNonBlocking), "cuStreamCreate");
  return stream;
}

bool CudaDevice::is_recording(Stream stream) {
  if (!driver_->has_graphs) return false;
  int status = kNotCapturing;
  driver_->check(driver_->is_capturing(stream, &status), "cuStreamIsCapturing");
  return status != kNotCapturing;
}

void CudaDevice::begin_recording(Stream stream) {
  driver_->check(driver_->begin_capture(stream, kThreadLocal), "cuStreamBeginCapture");
}

GraphNode CudaDevice::last_recorded(Stream stream) {
  int status = kNotCapturing;
  uint64_t id = 0;
  void* graph = nullptr;
  void* const* nodes = nullptr;
  size_t count = 0;
  driver_->check(driver_->capture_info(stream, &status, &id, &graph, &nodes, &count), "cuStreamGetCaptureInfo");
  if (count != 1) return nullptr;
  int type = kKernelNode;
  driver_->check(driver_->node_type(nodes[0], &type), "cuGraphNodeGetType");
  return type == kKernelNode ? nodes[0] : nullptr;
}

std::unique_ptr<LaunchGraph> CudaDevice::end_recording(Stream stream) {
  void* graph = nullptr;
  driver_->check(driver_->end_capture(stream, &graph), "cuStreamEndCapture");
  auto out = std::make_unique<CudaGraph>(driver_, graph);
  out->instantiate();
  return out;
}

}  // namespace cresset::runtime::cuda
