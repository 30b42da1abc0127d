"""The former name of `surefoot.worlds`: Gymnasium ids such as `surefoot.envs.gymnasium:Trap-v0` still work."""
