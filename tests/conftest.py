pytest_plugins = ["devcluster.pytest_plugin"]
