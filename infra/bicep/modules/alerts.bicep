// One rule an alert, each a query on the event lines (docs/events.md). Queries stand in shared/alerts.json.

param name string
param location string
param insightsId string
param email string
param poisonQueue string
param noTickMinutes int
param timersEnabled bool

var alerts = loadJsonContent('../../shared/alerts.json')

resource group 'Microsoft.Insights/actionGroups@2023-01-01' = if (email != '') {
  name: 'ag-${name}'
  location: 'global'
  properties: {
    groupShortName: 'firn'
    enabled: true
    emailReceivers: [
      {
        name: 'email'
        emailAddress: email
        useCommonAlertSchema: true
      }
    ]
  }
}

resource rules 'Microsoft.Insights/scheduledQueryRules@2022-06-15' = [for alert in alerts: {
  name: '${name}-${alert.name}'
  location: location
  kind: 'LogAlert'
  properties: {
    displayName: '${name}: ${alert.name}'
    description: alert.description
    severity: alert.severity
    // A planner that is switched off ticks never.
    enabled: timersEnabled || !alert.needsTimers
    scopes: [
      insightsId
    ]
    evaluationFrequency: alert.evaluationFrequency
    windowSize: alert.windowSize
    criteria: {
      allOf: [
        {
          query: replace(replace(join(alert.query, '\n'), '{poisonQueue}', poisonQueue), '{noTickMinutes}', string(noTickMinutes))
          timeAggregation: 'Count'
          operator: 'GreaterThan'
          threshold: 0
        }
      ]
    }
    autoMitigate: true
    actions: {
      actionGroups: email == '' ? [] : [
        group.id
      ]
    }
  }
}]
