module @jit_safe_log attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<f32>) -> (tensor<f32> {jax.result_info = "result"}) {
    %0 = stablehlo.constant dense<0.0> : tensor<f32>
    %1 = stablehlo.compare GT, %arg0, %0, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %2 = stablehlo.convert %1 : (tensor<i1>) -> tensor<i32>
    %6 = "stablehlo.case"(%2) ({
      %3 = stablehlo.constant dense<0xFF800000> : tensor<f32>
      %4 = stablehlo.broadcast_in_dim %3, dims = [] : (tensor<f32>) -> tensor<f32>
      stablehlo.return %4 : tensor<f32>
    }, {
      %5 = stablehlo.log %arg0 : tensor<f32>
      stablehlo.return %5 : tensor<f32>
    }) : (tensor<i32>) -> (tensor<f32>)
    return %6 : tensor<f32>
  }
}
