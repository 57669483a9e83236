// Values of a deployment. Copy it, or change it here; firn.yaml is the file that goes into the package.
using 'main.bicep'

param name = 'firn-lake'
param firn = loadYamlContent('../../firn.yaml')
param alertEmail = ''
param operators = []
param keyVaultName = ''
param secrets = {}
param timersEnabled = false
param orphansEnabled = false
