// What an engine includes: tables, kernels, weights, plans, routing and launch. jit.hpp is apart, for those who
// compile.
//
//   Table::load -> table.layout(device, shape) -> repack -> table.choose -> find_kernel or jit::compile -> make_plan,
//   once; then, for every batch, build_routing and launch on the engine's own stream.
// Invariant: no global state and no exceptions of its own. Links the CUDA runtime, and neither the driver nor NVRTC.
#pragma once

#include <fulcrum/host/error.hpp>
#include <fulcrum/host/device.hpp>
#include <fulcrum/host/cuda_api.hpp>
#include <fulcrum/host/kernel.hpp>
#include <fulcrum/host/table.hpp>
#include <fulcrum/host/weights.hpp>
#include <fulcrum/host/plan.hpp>
#include <fulcrum/host/routing.hpp>
#include <fulcrum/host/launch.hpp>
